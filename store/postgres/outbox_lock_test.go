package postgres_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// TestLockKeys holds that a writer of a key waits until the writer before has committed, and that writers of other keys do not.
func TestLockKeys(t *testing.T) {
	t.Parallel()
	pgtest.Each(t, func(t *testing.T, dsn string) {
		ctx := t.Context()
		h := newHouse(t, dsn, postgres.Layout{})
		outbox, err := postgres.NewOutbox(postgres.OutboxConfig{Config: h.cfg, LockKeys: true})
		if err != nil {
			t.Fatal(err)
		}
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
