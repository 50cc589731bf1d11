package failures_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// scene is a schema with relays, and a record of what arrives.
type scene struct {
	t     *testing.T
	pool  *pgxpool.Pool
	cfg   postgres.Config
	db    *postgres.DB
	admin *postgres.Admin
}

// quiet discards the logs of expected failures.
var quiet = slog.New(slog.DiscardHandler)

var ann = admin.By{Who: "ann@test", Why: "a test"}

func newScene(t *testing.T, dsn string, layout postgres.Layout) *scene {
	t.Helper()
	s := &scene{t: t, pool: pgtest.Pool(t, dsn)}
	s.cfg = pgtest.Schema(t, s.pool, layout)
	var err error
	if s.db, err = postgres.Open(s.pool, s.cfg); err != nil {
		t.Fatal(err)
	}
	s.admin = s.db.Admin()
	return s
}

// newest returns the server for tests that need only one version.
func newest(t *testing.T) string { return pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18") }

// enqueue enqueues messages in one transaction.
func (s *scene) enqueue(msgs ...postrider.Message) {
	s.t.Helper()
	err := pgx.BeginFunc(s.t.Context(), s.pool, func(tx pgx.Tx) error { return s.db.Outbox().Enqueue(s.t.Context(), tx, msgs...) })
	if err != nil {
		s.t.Fatal(err)
	}
}

// exec runs a statement, with @ replaced by the schema.
func (s *scene) exec(sql string, args ...any) {
	s.t.Helper()
	if _, err := s.pool.Exec(s.t.Context(), fmt.Sprintf(sql, s.cfg.Schema), args...); err != nil {
		s.t.Fatal(err)
	}
}

// start runs a relay until the returned function is called or the test ends.
func (s *scene) start(pub postrider.Publisher, cfg relay.Config) (stop func()) {
	s.t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = quiet
	}
	r, err := relay.New(s.db.Feeds(), pub, cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := r.Run(ctx); err != nil {
			s.t.Errorf("Run: %v", err)
		}
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	s.t.Cleanup(stop)
	return stop
}

// eventually polls cond until it holds.
func (s *scene) eventually(within time.Duration, what string, cond func() bool) {
	s.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(within)
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			s.t.Fatalf("waited %v in vain until %s", within, what)
		}
	}
}
