// Package fleet runs relays as separate processes, so that tests can kill, suspend and restart
// them.
package fleet

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	_ "github.com/go-sql-driver/mysql" // for the classic store
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib" // likewise

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/test/proof/history"
)

const variable = "POSTRIDER_TEST_RELAY_PROCESS"

// Config configures a relay process.
type Config struct {
	DSN      string
	Schema   string
	Classic  table.Dialect // of the classic store; empty: the log
	Log      string        // file to which deliveries are appended
	Feed     string        // empty: the default
	Lease    time.Duration // empty: the relay's default; the same below
	Batch    int
	Ahead    int
	PollMax  time.Duration
	Maintain time.Duration
	Slow     time.Duration // maximum time that the sink takes
	Verbose  bool          // log to standard error
	KillKey  string        // a key: the process dies when it sends a message of it

	Process string // set by the fleet
}

// Main runs a relay process, and does not return, if the test binary was started as one. TestMain
// calls it first.
func Main() {
	if text := os.Getenv(variable); text != "" {
		var cfg Config
		err := json.Unmarshal([]byte(text), &cfg)
		if err == nil {
			err = run(cfg)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "relay process:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

func run(cfg Config) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	store, closeStore, err := open(ctx, cfg)
	if err != nil {
		return err
	}
	defer closeStore()
	sink, err := history.OpenLog(cfg.Log, cfg.Process)
	if err != nil {
		return err
	}
	defer sink.Close()
	if cfg.Slow > 0 {
		sink.Before = func(ctx context.Context, _ []postrider.Message) error {
			t := time.NewTimer(rand.N(cfg.Slow))
			defer t.Stop()
			select {
			case <-t.C:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	if cfg.KillKey != "" {
		sink.Before = func(_ context.Context, msgs []postrider.Message) error {
			if slices.ContainsFunc(msgs, func(m postrider.Message) bool { return m.Key == cfg.KillKey }) {
				os.Exit(3) // like a crash: nothing is released
			}
			return nil
		}
	}
	level := slog.LevelError
	if cfg.Verbose {
		level = slog.LevelInfo
	}
	r, err := relay.New(store, sink, relay.Config{
		Feed: cfg.Feed, Create: true, Name: cfg.Process, Lease: cfg.Lease, BatchSize: cfg.Batch, ReadAhead: cfg.Ahead,
		PollMax: cfg.PollMax, MaintainInterval: cfg.Maintain,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})).With("process", cfg.Process),
	})
	if err != nil {
		return err
	}
	return r.Run(ctx)
}

func open(ctx context.Context, cfg Config) (_ feeds.Store, closeStore func(), _ error) {
	if cfg.Classic == "" {
		pool, err := pgxpool.New(ctx, cfg.DSN)
		if err != nil {
			return nil, nil, err
		}
		db, err := postgres.Open(pool, postgres.Config{Schema: cfg.Schema})
		if err != nil {
			return nil, nil, err
		}
		return db.Feeds(), pool.Close, nil
	}
	driver := "pgx"
	if cfg.Classic == table.MySQL {
		driver = "mysql"
	}
	db, err := sql.Open(driver, cfg.DSN)
	if err != nil {
		return nil, nil, err
	}
	opened, err := table.Open(db, table.Config{Dialect: cfg.Classic, Schema: cfg.Schema})
	if err != nil {
		return nil, nil, err
	}
	return opened.Feeds(), func() { _ = db.Close() }, nil
}
