package e2e_test

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
	"github.com/postrider/postrider/test/fleet"
	"github.com/postrider/postrider/test/proof/history"
)

func TestMain(m *testing.M) {
	fleet.Main()
	os.Exit(m.Run())
}

// scene is a fresh log with the writers' tables and a file for deliveries.
type scene struct {
	t    *testing.T
	dsn  string
	pool *pgxpool.Pool
	cfg  postgres.Config
	db   *postgres.DB
	log  string

	numbers atomic.Int64 // for facts that the test itself commits
}

func newScene(t *testing.T, dsn string, layout postgres.Layout) *scene {
	t.Helper()
	pool := pgtest.Pool(t, dsn)
	cfg := pgtest.Schema(t, pool, layout)
	if err := history.Setup(t.Context(), pool, cfg, 200); err != nil {
		t.Fatal(err)
	}
	return sceneIn(t, dsn, pool, cfg)
}

// sceneIn returns a scene in an existing schema.
func sceneIn(t *testing.T, dsn string, pool *pgxpool.Pool, cfg postgres.Config) *scene {
	t.Helper()
	db, err := postgres.Open(pool, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &scene{t: t, dsn: dsn, pool: pool, cfg: cfg, db: db, log: filepath.Join(t.TempDir(), "deliveries")}
}

func (s *scene) write(plan history.Plan) *history.Writers {
	s.t.Helper()
	writers, err := history.Start(s.t.Context(), s.pool, s.cfg, plan)
	if err != nil {
		s.t.Fatal(err)
	}
	return writers
}

// relays starts processes that deliver to the scene's file, unless the configuration names another.
func (s *scene) relays(cfg fleet.Config, size int) *fleet.Fleet {
	cfg.DSN, cfg.Schema = s.dsn, s.cfg.Schema
	if cfg.Log == "" {
		cfg.Log = s.log
	}
	return fleet.Start(s.t, cfg, size)
}

// settle waits until everything committed has arrived, or the time is up, and returns the verdict.
func (s *scene) settle(within time.Duration) history.Verdict {
	s.t.Helper()
	return s.settleLog(s.log, within)
}

func (s *scene) settleLog(log string, within time.Duration) history.Verdict {
	s.t.Helper()
	var verdict history.Verdict
	s.eventually(within, func() bool {
		verdict = s.check(s.arrived(log))
		return len(verdict.Lost) == 0
	})
	return verdict
}

func (s *scene) arrived(log string) []history.Delivery {
	s.t.Helper()
	arrived, err := history.ReadLog(log)
	if err != nil {
		s.t.Fatal(err)
	}
	return arrived
}

func (s *scene) check(arrived []history.Delivery) history.Verdict {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 30*time.Second)
	defer cancel()
	verdict, err := history.Check(ctx, s.pool, s.cfg, arrived)
	if err != nil {
		s.t.Fatal(err)
	}
	return verdict
}

// eventually polls yes until it is true, and returns how long that took, or false.
func (s *scene) eventually(within time.Duration, yes func() bool) (time.Duration, bool) {
	s.t.Helper()
	start := time.Now()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if yes() {
			return time.Since(start), true
		}
		if time.Since(start) > within {
			return time.Since(start), false
		}
		select {
		case <-tick.C:
		case <-s.t.Context().Done():
			return time.Since(start), false
		}
	}
}
