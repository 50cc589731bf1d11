package postgres_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// TestLockKeys verifies that a writer of a key waits until the previous writer has committed, and
// that writers of other keys do not.
func TestLockKeys(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		ctx := t.Context()
		h := newHouse(t, dsn, postgres.Layout{})
		cfg := h.cfg
		cfg.LockKeys = true
		outbox := must(postgres.Open(h.pool, cfg))(t).Outbox()
		begin := func() pgx.Tx {
			tx, err := h.pool.Begin(ctx)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = tx.Rollback(ctx) })
			return tx
		}
		enqueue := func(tx pgx.Tx, keys ...string) error {
			var msgs []postrider.Message
			for _, key := range keys {
				msgs = append(msgs, postrider.Message{ID: postrider.NewID(), Type: "t", Key: key})
			}
			return outbox.Enqueue(ctx, tx, msgs...)
		}

		first, second, other := begin(), begin(), begin()
		if err := enqueue(first, "a", "b"); err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() { done <- enqueue(second, "c", "b") }()
		pid := second.Conn().PgConn().PID()
		for waits := false; !waits; {
			select {
			case err := <-done:
				t.Fatalf("the second writer of a key has not waited: %v", err)
			case <-time.After(10 * time.Millisecond):
			}
			err := h.pool.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_locks WHERE pid = $1 AND locktype = 'advisory' AND NOT granted)",
				pgx.QueryExecModeExec, int64(pid)).Scan(&waits)
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := enqueue(other, "d"); err != nil {
			t.Fatal(err)
		}
		if err := first.Commit(ctx); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	})
}

// TestLockManyKeys verifies that a call with any number of keys leaves room in the server's lock
// table, and still excludes other writers of the same keys.
func TestLockManyKeys(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		ctx := t.Context()
		h := newHouse(t, dsn, postgres.Layout{})
		const many = "SELECT @.lock_keys(VARIADIC ARRAY(SELECT 'key ' || i FROM generate_series(1, 40000) i))"
		const one = "SELECT @.lock_keys('key 77')"
		for _, c := range []struct{ first, second string }{{many, one}, {one, many}, {many, many}, {one, one}} {
			first, err := h.pool.Begin(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer first.Rollback(ctx)
			if _, err := first.Exec(ctx, h.in(c.first)); err != nil {
				t.Fatal(err)
			}
			var locks int
			if err := first.QueryRow(ctx, "SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid()").Scan(&locks); err != nil || locks > 1100 {
				t.Errorf("%s takes %d locks; %v", c.first, locks, err)
			}
			err = pgx.BeginFunc(ctx, h.pool, func(tx pgx.Tx) error {
				if _, err := tx.Exec(ctx, "SET LOCAL lock_timeout = '50ms'"); err != nil {
					return err
				}
				_, err := tx.Exec(ctx, h.in(c.second))
				return err
			})
			if sqlState(err) != "55P03" { // lock_not_available
				t.Errorf("%s does not wait for %s: %v", c.second, c.first, err)
			}
			if c.first == one {
				err = pgx.BeginFunc(ctx, h.pool, func(tx pgx.Tx) error {
					_, err := tx.Exec(ctx, h.in("SET LOCAL lock_timeout = '5s'; SELECT @.lock_keys(VARIADIC ARRAY(SELECT 'other ' || i FROM generate_series(1, 32) i))"),
						pgx.QueryExecModeSimpleProtocol)
					return err
				})
				if err != nil {
					t.Errorf("writers of other keys: %v", err)
				}
			}
			if err := first.Rollback(ctx); err != nil {
				t.Fatal(err)
			}
		}
	})
}
