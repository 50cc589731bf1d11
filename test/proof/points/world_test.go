package points

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
	"github.com/postrider/postrider/test/proof/points/tap"
)

// world is the place of one case: a schema, a name at the broker, and the processes.
type world struct {
	t    *testing.T
	ctx  context.Context
	name string
	dsn  string
	// lease is that of relays: short where one is to lose it, and otherwise so long that it is not lost for lack of time.
	lease time.Duration

	pool   *pgxpool.Pool // for the test itself: nothing goes wrong on it
	cfg    postgres.Config
	db     *postgres.DB
	broker destination

	committed []string            // the payloads of messages, in the order of their keys
	late      pgx.Tx              // a transaction that commits late
	twice     []postrider.Message // that are published twice
	relay     *process            // a healthy one beside the others

	first   *process
	replace func() // starts the second
	mu      sync.Mutex
	second  *process
}

var cases atomic.Int64

func caseName() string { return fmt.Sprintf("points-%d-%d", os.Getpid(), cases.Add(1)) }

// servers are connections of the test itself, for all cases.
type servers struct {
	dsn  string
	pool *pgxpool.Pool
	js   jetstream.JetStream
}

func connect(t *testing.T) *servers {
	t.Helper()
	s := &servers{dsn: pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18")}
	cfg, err := pgxpool.ParseConfig(s.dsn)
	if err != nil {
		t.Fatal(err)
	}
	cfg.MaxConns = 40
	quick(cfg)
	if s.pool, err = pgxpool.NewWithConfig(context.Background(), cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.pool.Close)
	conn, err := client.Connect(pgtest.Env(t, "POSTRIDER_TEST_NATS"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	if s.js, err = jetstream.New(conn); err != nil {
		t.Fatal(err)
	}
	return s
}

// quick is for both sides: only clients die here, so what has committed does not have to reach the disk.
func quick(cfg *pgxpool.Config) {
	cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	cfg.ConnConfig.RuntimeParams["synchronous_commit"] = "off"
}

// world opens the place of a case in a schema.
func (s *servers) world(t *testing.T, name string, cfg postgres.Config) *world {
	t.Helper()
	w := &world{t: t, name: name, dsn: s.dsn, pool: s.pool, cfg: cfg}
	var err error
	if w.db, err = postgres.Open(s.pool, cfg); err != nil {
		t.Fatal(err)
	}
	return w
}

// part is what every process is told.
func (w *world) part(role string) part {
	p := part{Role: role, DSN: w.dsn, Schema: w.cfg.Schema, Name: w.name}
	if w.broker != nil {
		p.Broker, p.URL = w.broker.address()
	}
	return p
}

func (w *world) in(sql string) string { return strings.ReplaceAll(sql, "@", w.cfg.Schema) }

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	if _, err := w.pool.Exec(w.t.Context(), w.in(sql), args...); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) number(sql string, args ...any) (n int) {
	w.t.Helper()
	if err := w.pool.QueryRow(w.t.Context(), w.in(sql), args...).Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	return n
}

func (w *world) texts(sql string, args ...any) []string {
	w.t.Helper()
	rows, err := w.pool.Query(w.t.Context(), w.in(sql), args...)
	if err != nil {
		w.t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// database connects a process that is watched.
func (p part) database(ctx context.Context, gate *tap.Gate) (*pgxpool.Pool, *postgres.DB, error) {
	cfg, err := pgxpool.ParseConfig(p.DSN)
	if err != nil {
		return nil, nil, err
	}
	cfg.MaxConns = 5
	quick(cfg)
	cfg.ConnConfig.DialFunc = gate.Dial(func() tap.Protocol { return tap.Postgres(nameStatement())() })
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	db, err := postgres.Open(pool, postgres.Config{Schema: p.Schema})
	return pool, db, err
}

func (p part) logger() *slog.Logger { return slog.Default() }

// message is one of a key; its payload says which.
func message(topic, key string, n int) postrider.Message {
	return postrider.Message{
		ID: postrider.NewID(), Type: "point", Key: key, Topic: topic, ContentType: "text/plain", Payload: fmt.Appendf(nil, "%s %d", key, n),
	}
}
