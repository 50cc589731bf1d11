package postgres_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// TestDedupOverlap enqueues one dedup key in two concurrent transactions. The second must wait for
// the first, and write its message if the first rolls back.
func TestDedupOverlap(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, still)
		for _, committed := range []bool{true, false} {
			m := postrider.UniqueEvent("order.placed", postrider.Aggregate{Type: "order", ID: map[bool]string{true: "1", false: "2"}[committed]}, nil)
			first, err := h.pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if repeats, err := h.outbox.Offer(t.Context(), first, m); err != nil || len(repeats) > 0 {
				t.Fatalf("repeats %v, %v", repeats, err)
			}
			type answer struct {
				repeats []int
				err     error
			}
			second := make(chan answer)
			go func() {
				var a answer
				a.err = pgx.BeginFunc(t.Context(), h.pool, func(tx pgx.Tx) (err error) {
					a.repeats, err = h.outbox.Offer(t.Context(), tx, m)
					return err
				})
				second <- a
			}()
			h.awaitLockWait()
			if committed {
				err = first.Commit(t.Context())
			} else {
				err = first.Rollback(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			if a := <-second; a.err != nil || (len(a.repeats) == 1) != committed {
				t.Errorf("first committed: %v; the second repeats %v, %v", committed, a.repeats, a.err)
			}
		}
		var n int
		if err := h.pool.QueryRow(t.Context(), h.in("SELECT count(*) FROM @.messages")).Scan(&n); err != nil || n != 2 {
			t.Errorf("%d messages, %v; want one of each", n, err)
		}
	})
}

// awaitLockWait returns when a session waits for a lock on a row of this schema's keys.
func (h *house) awaitLockWait() {
	h.t.Helper()
	for {
		var waits bool
		err := h.pool.QueryRow(h.t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity
			WHERE wait_event_type = 'Lock' AND query LIKE '%' || $1 || '%claim_keys%')`, pgx.QueryExecModeExec, h.cfg.Schema).Scan(&waits)
		if err != nil {
			h.t.Fatal(err)
		}
		if waits {
			return
		}
	}
}
