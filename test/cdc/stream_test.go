package cdc_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// stream is a schema with a publication and a slot.
type stream struct {
	dsn  string
	pool *pgxpool.Pool
	cfg  postgres.Config
	db   *postgres.DB
	name string // of the publication and of the slot
}

func newStream(t *testing.T, dsn, publication string, layout postgres.Layout) *stream {
	t.Helper()
	pool := pgtest.Pool(t, dsn)
	s := &stream{dsn: dsn, pool: pool, cfg: pgtest.Schema(t, pool, layout)}
	var err error
	if s.db, err = postgres.Open(pool, s.cfg); err != nil {
		t.Fatal(err)
	}
	s.name = s.cfg.Schema
	s.exec(t, fmt.Sprintf(publication, s.name, s.cfg.Schema))
	t.Cleanup(func() { _, _ = pool.Exec(context.Background(), "DROP PUBLICATION "+s.name) })
	s.exec(t, "SELECT pg_create_logical_replication_slot('"+s.name+"', 'pgoutput')")
	t.Cleanup(func() { // as soon as the server has noticed that its reader is gone
		for range 100 {
			if _, err := pool.Exec(context.Background(), "SELECT pg_drop_replication_slot('"+s.name+"')"); err == nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Errorf("the slot %s is still there", s.name)
	})
	return s
}

func (s *stream) exec(t *testing.T, sql string) {
	t.Helper()
	if _, err := s.pool.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func (s *stream) open(t *testing.T) *reader {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	r, err := openReader(ctx, s.dsn, s.name, s.name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.kill)
	return r
}

// end returns the current end of the WAL.
func (s *stream) end(t *testing.T) (lsn uint64) {
	t.Helper()
	if err := s.pool.QueryRow(t.Context(), "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint").Scan(&lsn); err != nil {
		t.Fatal(err)
	}
	return lsn
}
