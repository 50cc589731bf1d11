package postgres_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// still is a ring that does not turn during a test.
var still = postgres.Layout{Shards: 4, Period: 10_000 * time.Hour}

// fill writes into the slot whose turn is next, as if it had been the current one long ago.
const fill = `INSERT INTO @.messages (type, slot)
	SELECT 't', (@.slot_at(now()) + 1) % @.slot_count() FROM generate_series(1, 12000)`

func TestReclaim(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, still)
		h.deliverAll("a")
		h.exec(fill)
		h.deliverAll("a")
		h.open("b").Close(t.Context()) // has seen nothing yet
		h.mustReclaim(false)
		h.deliverAll("b")
		h.mustReclaim(true)
		h.mustReclaim(false) // nothing left
	})
}

// TestReclaimAboveTheLimit verifies that a log which is too large empties every slot that all feeds
// have passed, and no other.
func TestReclaimAboveTheLimit(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		ctx := t.Context()
		h := newHouse(t, dsn, still)
		fillAll := func() {
			t.Helper()
			h.exec("INSERT INTO @.messages (type, slot) SELECT 't', i % 8 FROM generate_series(1, 8000) i")
		}
		limited := func(most int64) []int {
			t.Helper()
			cfg := h.cfg
			cfg.MaxLogSize = most
			if err := openHouse(t, h.pool, cfg).store.Maintain(ctx); err != nil {
				t.Fatal(err)
			}
			rows, err := h.pool.Query(ctx, h.in("SELECT DISTINCT (slot - @.slot_at(now()) + 8) % 8 FROM @.messages ORDER BY 1"))
			if err != nil {
				t.Fatal(err)
			}
			left, err := pgx.CollectRows(rows, pgx.RowTo[int])
			if err != nil {
				t.Fatal(err)
			}
			return left
		}
		until := func(most int64, want ...int) {
			t.Helper()
			var left []int
			for range 100 { // autovacuum, or transactions of others, may interfere
				if left = limited(most); slices.Equal(left, want) {
					return
				}
				h.lookAgain()
			}
			t.Errorf("slots %v behind the current one are left, want %v", left, want)
		}
		h.open("f").Close(ctx)
		fillAll()
		if left := limited(1); len(left) != 8 {
			t.Errorf("slots %v are left, and nothing was delivered", left)
		}
		h.deliverAll("f")
		until(1<<40, 0, 2, 3, 4, 5, 6, 7) // always the next one
		until(0, 0, 2, 3, 4, 5, 6, 7)

		writer, err := h.pool.Begin(ctx) // of a slot whose turn is over
		if err != nil {
			t.Fatal(err)
		}
		defer writer.Rollback(ctx)
		if _, err := writer.Exec(ctx, h.in("INSERT INTO @.messages (type, slot) SELECT 't', (@.slot_at(now()) + 3) % 8")); err != nil {
			t.Fatal(err)
		}
		until(1, 0, 3) // the current slot, and the one with an open writer
		if err := writer.Commit(ctx); err != nil {
			t.Fatal(err)
		}
		if left := limited(1); !slices.Equal(left, []int{0, 3}) {
			t.Errorf("slots %v are left, want 0 and 3, which has a message to deliver", left)
		}
		h.deliverAll("f")
		until(1, 0)
	})
}

// TestReclaimWithoutFeeds verifies that nothing is removed before a feed has read it.
func TestReclaimWithoutFeeds(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, still)
		h.exec(fill)
		h.mustReclaim(false)
	})
}

// TestReclaimBesideOldTransaction verifies that a transaction which stays open does not stop
// retention, unless it has written to the slot itself.
func TestReclaimBesideOldTransaction(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, still)
		old, err := h.pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer old.Rollback(t.Context())
		if _, err := old.Exec(t.Context(), "SELECT pg_current_xact_id()"); err != nil {
			t.Fatal(err)
		}
		h.exec(fill)
		h.deliverAll("f")
		h.mustReclaim(true)

		if _, err := old.Exec(t.Context(), h.in(fill)); err != nil {
			t.Fatal(err)
		}
		h.exec(fill)
		h.deliverAll("f")
		h.mustReclaim(false) // the writer holds a lock on the slot
		if err := old.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		h.mustReclaim(false) // what it wrote was in flight at the last snapshot
		h.deliverAll("f")
		h.mustReclaim(true)
	})
}

// fillOne writes one message into the slot whose turn is next.
const fillOne = `INSERT INTO @.messages (type, slot) SELECT 't', (@.slot_at(now()) + 1) % @.slot_count()`

// TestReclaimBesideTheNewestWriter verifies that the message with the highest number of a slot
// keeps the slot if its transaction was in flight at the last read of all feeds.
func TestReclaimBesideTheNewestWriter(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		ctx := t.Context()
		h := newHouse(t, dsn, still)
		h.open("f").Close(ctx)
		for range 5 {
			h.exec(fill)
			h.deliverAll("f")
			h.deliverAll("f") // the floor of its cursors is the last number now
			writer, err := h.pool.Begin(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer writer.Rollback(ctx)
			if _, err := writer.Exec(ctx, h.in(fillOne)); err != nil {
				t.Fatal(err)
			}
			h.deliverAll("f") // sees that it is in flight
			h.deliverAll("f")
			h.mustReclaim(false)
			if err := writer.Commit(ctx); err != nil {
				t.Fatal(err)
			}
			h.mustReclaim(false)
			h.deliverAll("f")
			h.mustReclaim(true)
		}
	})
}

// TestReclaimLooksAgainUnderTheLock verifies that a message which is committed between the first
// check and the lock is not truncated.
func TestReclaimLooksAgainUnderTheLock(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		ctx := t.Context()
		h := newHouse(t, dsn, still)
		h.exec("ALTER FUNCTION @.reclaim SET lock_timeout = '30s'") // so that it waits for the writer even on a slow machine
		h.exec(fill)
		h.deliverAll("f")
		writer, err := h.pool.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer writer.Rollback(ctx)
		if _, err := writer.Exec(ctx, h.in(fillOne)); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		maintain := func() { done <- h.store.Maintain(ctx) }
		go maintain()
		for waits := false; !waits; {
			err := h.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock'
				AND relation IN (SELECT oid FROM pg_class WHERE relnamespace = $1::regnamespace))`, h.cfg.Schema).Scan(&waits)
			if err != nil {
				t.Fatal(err)
			}
			select {
			case err := <-done:
				if err != nil || ctx.Err() != nil {
					t.Fatal(err)
				}
				h.lookAgain() // transactions of others that were in flight at the last read have ended
				go maintain()
			case <-time.After(5 * time.Millisecond):
			}
		}
		if err := writer.Commit(ctx); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if n := h.count(); n != 12001 {
			t.Errorf("%d messages are left, want all 12001: one is not delivered", n)
		}
	})
}

// TestReclaimKeepsTheContentOfADeadLetter verifies that a slot is kept while it has the only
// content of a deferred message.
func TestReclaimKeepsTheContentOfADeadLetter(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, still)
		s := h.sit("f")
		h.exec(fillOne)
		s.readAll()
		for _, b := range s.latest {
			dead := feeds.Deferral{Batch: b, Status: feeds.StatusDead, Bare: true, Cause: "refused"}
			if err := s.Defer(t.Context(), []feeds.Deferral{dead}); err != nil {
				t.Fatal(err)
			}
		}
		s.leave()
		h.deliverAll("f")
		h.deliverAll("f")
		h.mustReclaim(false)
		h.exec("DELETE FROM @.deferred")
		h.mustReclaim(true)
	})
}

// TestReclaimInForeignDatabase verifies that a restored ledger does not decide about messages
// written since.
func TestReclaimInForeignDatabase(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, still)
		h.enqueue(3)
		h.deliverAll("f")
		h.exec(restored)
		h.exec("UPDATE @.checkpoints SET lo = 1000000000") // the other database was further ahead
		h.exec(fill)
		h.mustReclaim(false)
		h.rebase()
		h.mustReclaim(false)
	})
}

func TestReclaimRefusesAnOldSnapshot(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		newHouse(t, dsn, still).mustFail(pgx.RepeatableRead, "SELECT @.reclaim()")
	})
}

// TestLedgerIsSwept verifies that old rows are deleted, and that a cursor is kept however old it
// is.
func TestLedgerIsSwept(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, still)
		for _, name := range []string{"idle", "busy"} {
			h.open(name).Close(t.Context())
		}
		h.exec(`UPDATE @.checkpoints SET at = now() - interval '1 hour';
			INSERT INTO @.checkpoints (feed, shard, n, at, until, lo, starts, s1)
			SELECT feed, shard, n + i, now() - interval '15 minutes' + i * interval '1 minute', until, lo, starts, s1
			FROM @.cursors, generate_series(1, 15) i WHERE feed = 'busy'`)
		other, err := h.pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer other.Rollback(t.Context())
		if _, err := other.Exec(t.Context(), h.in("SELECT @.sweep()")); err != nil {
			t.Fatal(err)
		}
		hurry, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := h.store.Maintain(hurry); err != nil { // sweep must not wait for locked rows, because that could deadlock
			t.Fatal(err)
		}
		if err := other.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		expect := func(want map[string]int) {
			t.Helper()
			rows, _ := h.pool.Query(t.Context(), h.in("SELECT feed, count(*) / count(DISTINCT shard) FROM @.checkpoints GROUP BY feed"))
			got := map[string]int{}
			var feed string
			var left int
			if _, err := pgx.ForEachRow(rows, []any{&feed, &left}, func() error { got[feed] = left; return nil }); err != nil {
				t.Fatal(err)
			}
			if !maps.Equal(got, want) {
				t.Errorf("rows of each shard: %v, want %v", got, want)
			}
		}
		expect(map[string]int{"idle": 1, "busy": 10})
		h.exec("UPDATE @.checkpoints SET at = at - interval '1 hour'")
		if err := h.store.Maintain(t.Context()); err != nil {
			t.Fatal(err)
		}
		expect(map[string]int{"idle": 1, "busy": 1}) // the sweep before has passed none of them
	})
}

// TestSweepAtSize verifies that one round of housekeeping removes ten times the usual amount, in
// short statements, and that rows which were deleted but cannot be vacuumed, because of an old
// snapshot, are not scanned again.
func TestSweepAtSize(t *testing.T) {
	t.Parallel()
	size := 100_000
	if need.IsLong() {
		size = 1_000_000
	}
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		ctx := t.Context()
		h := newHouse(t, dsn, still)
		h.open("f").Close(ctx)
		h.exec(fmt.Sprintf(`ALTER TABLE @.checkpoints SET (autovacuum_enabled = false); ALTER TABLE @.dedup_keys SET (autovacuum_enabled = false);
			UPDATE @.checkpoints SET at = now() - interval '1 hour';
			INSERT INTO @.checkpoints (feed, shard, n, at, until, lo, starts, s1)
			SELECT feed, shard, n + i, now() - interval '1 hour', until, lo, starts, s1 FROM @.cursors, generate_series(1, %d) i WHERE shard = 0;
			INSERT INTO @.members (feed, member, name, until) SELECT 'f', gen_random_uuid(), 'm', 'epoch' FROM generate_series(1, %[1]d / 4);
			INSERT INTO @.dedup_keys SELECT 'old ' || i, now() - interval '30 days' + i * interval '1 ms' FROM generate_series(1, %[1]d) i`, size))
		old, err := h.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
		if err != nil {
			t.Fatal(err)
		}
		defer old.Rollback(ctx)
		if _, err := old.Exec(ctx, "SELECT 1"); err != nil {
			t.Fatal(err)
		}
		var plans plans
		watched := h.watched(t, dsn+"&statement_timeout=3000", &plans)
		maintain := func() (buffers int) {
			plans.clear()
			if err := watched.store.Maintain(ctx); err != nil {
				t.Fatal(err)
			}
			for _, table := range []string{"checkpoints", "dedup_keys", "swept"} {
				some, _, faults := plans.inspectAll(table)
				buffers += some
				for _, fault := range faults {
					t.Error(fault)
				}
			}
			return buffers
		}
		began := time.Now()
		buffers := maintain()
		t.Logf("%s, %d buffers", time.Since(began).Round(time.Millisecond), buffers)
		var ledger, keys, members int
		err = h.pool.QueryRow(ctx, h.in("SELECT (SELECT count(*) FROM @.checkpoints), (SELECT count(*) FROM @.dedup_keys), (SELECT count(*) FROM @.members WHERE until = 'epoch')")).
			Scan(&ledger, &keys, &members)
		if err != nil || ledger != still.Shards || keys != 0 || members != 0 {
			t.Errorf("left: %d ledger rows, %d dedup keys, %d members; %v", ledger, keys, members, err)
		}

		h.exec(`INSERT INTO @.dedup_keys VALUES ('one more', now() - interval '7 days');
			INSERT INTO @.checkpoints (feed, shard, n, at, until, lo, starts, s1)
			SELECT feed, shard, n + i, now() - interval '1 hour', until, lo, starts, s1 FROM @.cursors, generate_series(1, 2) i`)
		buffers = maintain()
		t.Logf("beside an old snapshot: %d buffers", buffers)
		if buffers > 2000 {
			t.Errorf("a later sweep walks over what was deleted: %d buffers", buffers)
		}
		if err := h.pool.QueryRow(ctx, h.in("SELECT count(*) FROM @.dedup_keys")).Scan(&keys); err != nil || keys != 0 {
			t.Errorf("left: %d dedup keys; %v", keys, err)
		}
	})
}

// TestSweepKeepsWhatIsInTheWindow verifies that a dedup key is remembered for the window, and not
// longer.
func TestSweepKeepsWhatIsInTheWindow(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, postgres.Layout{DedupWindow: time.Hour})
		offer := func(key string) (repeats int) {
			t.Helper()
			err := pgx.BeginFunc(t.Context(), h.pool, func(tx pgx.Tx) error {
				repeated, err := h.outbox.Offer(t.Context(), tx, postrider.Message{Type: "t", DedupKey: key})
				repeats = len(repeated)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return repeats
		}
		offer("young")
		offer("old")
		h.exec("UPDATE @.dedup_keys SET at = at - CASE key WHEN 'old' THEN interval '61 minutes' ELSE interval '59 minutes' END")
		if err := h.store.Maintain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if offer("young") != 1 {
			t.Error("a dedup key is forgotten inside its window")
		}
		var left int
		if err := h.pool.QueryRow(t.Context(), h.in("SELECT count(*) FROM @.dedup_keys WHERE key = 'old'")).Scan(&left); err != nil || left > 0 {
			t.Errorf("a dedup key outlives its window: %v", err)
		}
		if offer("old") != 0 {
			t.Error("a dedup key counts behind its window")
		}
	})
}

// TestSweepComesBackForALockedKey verifies that a key that was locked when it expired is swept
// later.
func TestSweepComesBackForALockedKey(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		ctx := t.Context()
		h := newHouse(t, dsn, still)
		h.exec("INSERT INTO @.dedup_keys SELECT 'k' || i, now() - interval '30 days' + i * interval '1 s' FROM generate_series(1, 3) i")
		tx, err := h.pool.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback(ctx)
		if _, err := tx.Exec(ctx, h.in("SELECT @.claim_keys('{k2}')")); err != nil {
			t.Fatal(err)
		}
		left := func() (n int) {
			if err := h.store.Maintain(ctx); err != nil {
				t.Fatal(err)
			}
			if err := h.pool.QueryRow(ctx, h.in("SELECT count(*) FROM @.dedup_keys")).Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		if n := left(); n != 1 {
			t.Errorf("%d keys are left, want the one that is locked", n)
		}
		if err := tx.Rollback(ctx); err != nil {
			t.Fatal(err)
		}
		if n := left(); n != 0 {
			t.Errorf("%d keys are left", n)
		}
	})
}

func (h *house) deliverAll(feed string) {
	h.t.Helper()
	if _, err := deliver(h.t.Context(), h.open(feed)); err != nil {
		h.t.Fatal(err)
	}
}

// mustReclaim runs maintenance and checks whether it has emptied the log.
func (h *house) mustReclaim(want bool) {
	h.t.Helper()
	before := h.count()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for range 100 { // autovacuum, for instance, may hold a lock on the slot
		if err := h.store.Maintain(h.t.Context()); err != nil {
			h.t.Fatal(err)
		}
		if !want || h.count() == 0 {
			break
		}
		<-tick.C
		h.lookAgain() // as relays do: transactions that were in flight at the last read may have ended
	}
	if after := h.count(); want && (before == 0 || after != 0) || !want && after != before {
		h.t.Errorf("%d messages became %d; want them gone: %t", before, after, want)
	}
}

// lookAgain makes every feed read again.
func (h *house) lookAgain() {
	h.t.Helper()
	rows, err := h.pool.Query(h.t.Context(), h.in("SELECT name FROM @.feeds"))
	if err != nil {
		h.t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		h.t.Fatal(err)
	}
	for _, name := range names {
		h.deliverAll(name)
	}
}

func (h *house) count() (n int) {
	h.t.Helper()
	if err := h.pool.QueryRow(h.t.Context(), h.in("SELECT count(*) FROM @.messages")).Scan(&n); err != nil {
		h.t.Fatal(err)
	}
	return n
}
