package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
	"github.com/postrider/postrider/test/proof/history"
)

// newDatabase creates an empty database beside that of the address, for the duration of the test.
func newDatabase(t *testing.T, dsn string) string {
	t.Helper()
	return createDatabase(t, dsn, "")
}

func createDatabase(t *testing.T, dsn, options string) string {
	t.Helper()
	pool := pgtest.Pool(t, dsn)
	name := "t_" + strings.ReplaceAll(postrider.NewID().String(), "-", "")
	if _, err := pool.Exec(t.Context(), "CREATE DATABASE "+name+options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := pool.Exec(context.WithoutCancel(t.Context()), "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	return otherDatabase(t, dsn, name)
}

func otherDatabase(t *testing.T, dsn, name string) string {
	t.Helper()
	address, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	address.Path = "/" + name
	return address.String()
}

// cloneDatabase copies the scene's database, which must have no other connections.
func (s *scene) cloneDatabase() string {
	s.t.Helper()
	address, err := url.Parse(s.dsn)
	if err != nil {
		s.t.Fatal(err)
	}
	source := strings.TrimPrefix(address.Path, "/")
	server := pgtest.Pool(s.t, otherDatabase(s.t, s.dsn, "postgres"))
	s.pool.Reset()
	s.mustHappen("everybody has left the database", func() bool {
		var n int
		err := server.QueryRow(s.t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE datname = $1", source).Scan(&n)
		return err == nil && n == 0
	})
	return createDatabase(s.t, otherDatabase(s.t, s.dsn, "postgres"), " TEMPLATE "+source)
}

// movedTo returns the scene in a database that its schema was copied to.
func (s *scene) movedTo(dsn string) *scene {
	s.t.Helper()
	moved := sceneIn(s.t, dsn, pgtest.Pool(s.t, dsn), s.cfg)
	moved.numbers.Store(s.numbers.Load())
	return moved
}

// dumpAndRestore moves the schema as an operator would, in one transaction, so that a partial
// restore is never visible.
func (s *scene) dumpAndRestore(to string) {
	s.t.Helper()
	bin := pgtest.Env(s.t, "POSTRIDER_TEST_POSTGRES15_BIN")
	need.Program(s.t, bin+"/pg_dump", "postgresql-15")
	file := filepath.Join(s.t.TempDir(), "dump.sql")
	s.run(bin+"/pg_dump", "--no-owner", "--schema", s.cfg.Schema, "--file", file, s.dsn)
	s.run(bin+"/psql", "--quiet", "--no-psqlrc", "--single-transaction", "--set", "ON_ERROR_STOP=1", "--file", file, to)
}

func (s *scene) run(program string, args ...string) {
	s.t.Helper()
	command := exec.CommandContext(s.t.Context(), program, args...)
	command.Stdout = io.Discard
	var errors bytes.Buffer
	command.Stderr = &errors
	if err := command.Run(); err != nil {
		s.t.Fatalf("%s: %v\n%s", program, err, errors.String())
	}
}

// copyTables moves the schema by migrating the target and copying the contents of the tables in one
// snapshot.
func (s *scene) copyTables(to string) {
	s.t.Helper()
	ctx := s.t.Context()
	target := pgtest.Pool(s.t, to)
	db, err := postgres.Open(target, s.cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	migrator, err := db.Migrator(postgres.Layout{})
	if err == nil {
		_, err = migrator.Up(ctx)
	}
	if err == nil {
		err = history.Setup(ctx, target, s.cfg, 1)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	snapshot := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = pgx.BeginTxFunc(ctx, s.pool, snapshot, func(from pgx.Tx) error {
		return pgx.BeginFunc(ctx, target, func(to pgx.Tx) error { return s.copyAll(ctx, from, to) })
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) copyAll(ctx context.Context, from, to pgx.Tx) error {
	rows, err := from.Query(ctx, `
		SELECT c.relname, string_agg(a.attname, ', ' ORDER BY a.attnum)
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND a.attgenerated = '' AND NOT a.attisdropped
		WHERE c.relnamespace = $1::text::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
		GROUP BY 1`, pgx.QueryExecModeExec, s.cfg.Schema)
	if err != nil {
		return err
	}
	columns := map[string]string{}
	var table, list string
	if _, err := pgx.ForEachRow(rows, []any{&table, &list}, func() error { columns[table] = list; return nil }); err != nil {
		return err
	}
	for table, list := range columns {
		name := s.cfg.Schema + "." + table
		var data bytes.Buffer
		if _, err := from.Conn().PgConn().CopyTo(ctx, &data, fmt.Sprintf("COPY (SELECT %s FROM %s) TO STDOUT", list, name)); err != nil {
			return err
		}
		// Deletes what the migrations have inserted. Other tables are empty, and the audit log
		// rejects deletion.
		sql := fmt.Sprintf("DO $$ BEGIN IF EXISTS (SELECT FROM %[1]s) THEN DELETE FROM %[1]s; END IF; END $$", name)
		if _, err := to.Exec(ctx, sql, pgx.QueryExecModeExec); err != nil {
			return err
		}
		if _, err := to.Conn().PgConn().CopyFrom(ctx, &data, fmt.Sprintf("COPY %s (%s) FROM STDIN", name, list)); err != nil {
			return err
		}
	}
	var last int64
	if err := from.QueryRow(ctx, "SELECT last_value FROM "+s.cfg.Schema+".message_seq", pgx.QueryExecModeExec).Scan(&last); err != nil {
		return err
	}
	_, err = to.Exec(ctx, fmt.Sprintf("SELECT setval('%s.message_seq', %d)", s.cfg.Schema, last), pgx.QueryExecModeExec)
	return err
}

// carrier is a relay in this process, whose state can be inspected.
type carrier struct {
	feed, log string
	relay     *relay.Relay
	arrivals  *follower
	stop      func()
}

// carry starts a relay with a short retry interval, so that tests need not wait.
func (s *scene) carry(feed string) *carrier {
	s.t.Helper()
	c := &carrier{feed: feed, log: s.log + "." + feed}
	c.arrivals = s.follow(c.log)
	sink, err := history.OpenLog(c.log, "carrier")
	if err != nil {
		s.t.Fatal(err)
	}
	c.relay, err = relay.New(s.db.Feeds(), sink, relay.Config{
		Feed: feed, Outage: retry.Policy{Most: 300 * time.Millisecond}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- c.relay.Run(ctx) }()
	stopped := false
	c.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			s.t.Errorf("%s: %v", feed, err)
		}
		sink.Close()
	}
	s.t.Cleanup(c.stop)
	return c
}

// settledByFeed returns which messages are settled according to the ledger.
func (s *scene) settledByFeed() map[string]map[string]bool {
	s.t.Helper()
	rows, err := s.pool.Query(s.t.Context(), "SELECT feed, id::text FROM "+s.cfg.Schema+".message_status WHERE status = 'published'",
		pgx.QueryExecModeExec)
	if err != nil {
		s.t.Fatal(err)
	}
	settled := map[string]map[string]bool{}
	var feed, id string
	_, err = pgx.ForEachRow(rows, []any{&feed, &id}, func() error {
		if settled[feed] == nil {
			settled[feed] = map[string]bool{}
		}
		settled[feed][id] = true
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return settled
}

// facts returns the committed messages.
func (s *scene) facts() map[string]bool {
	s.t.Helper()
	rows, err := s.pool.Query(s.t.Context(), "SELECT id::text FROM "+s.cfg.Schema+".facts", pgx.QueryExecModeExec)
	if err != nil {
		s.t.Fatal(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		s.t.Fatal(err)
	}
	known := map[string]bool{}
	for _, id := range ids {
		known[id] = true
	}
	return known
}

// all returns the messages that have arrived so far.
func (f *follower) all() map[string]bool {
	f.read()
	return maps.Clone(f.seen)
}
