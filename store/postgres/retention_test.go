package postgres_test

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// still is a ring that does not turn while a test runs.
var still = postgres.Layout{Shards: 4, Period: 10_000 * time.Hour}

// fill writes into the slot whose turn is next, as if that had been the current one long ago.
const fill = `INSERT INTO @.messages (type, slot)
	SELECT 't', (@.slot_at(now()) + 1) % @.slot_count() FROM generate_series(1, 12000)`

func TestReclaim(t *testing.T) {
	t.Parallel()
	pgtest.Each(t, func(t *testing.T, dsn string) {
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

// TestReclaimWithoutFeeds holds that nothing is removed before somebody has read it.
func TestReclaimWithoutFeeds(t *testing.T) {
	t.Parallel()
	pgtest.Each(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, still)
		h.exec(fill)
		h.mustReclaim(false)
	})
}

// TestReclaimBesideOldTransaction holds that a transaction that stays open does not stop retention, unless it has
// written to the slot itself.
func TestReclaimBesideOldTransaction(t *testing.T) {
	t.Parallel()
	pgtest.Each(t, func(t *testing.T, dsn string) {
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
		h.mustReclaim(false) // it holds the slot
		if err := old.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		h.mustReclaim(false) // what it wrote was in flight at the last snapshot
		h.deliverAll("f")
		h.mustReclaim(true)
	})
}

// TestReclaimInForeignDatabase holds that a restored ledger does not decide over what was written since.
func TestReclaimInForeignDatabase(t *testing.T) {
	t.Parallel()
	pgtest.Each(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, still)
		h.enqueue(3)
		h.deliverAll("f")
		h.exec(restored)
		h.exec(fill)
		h.mustReclaim(false)
		h.rebase()
		h.mustReclaim(false)
	})
}

func TestReclaimRefusesAnOldSnapshot(t *testing.T) {
	t.Parallel()
	pgtest.Each(t, func(t *testing.T, dsn string) {
		newHouse(t, dsn, still).mustFail(pgx.RepeatableRead, "SELECT @.reclaim()")
	})
}

// TestLedgerIsSwept holds that history goes, and that a cursor stays however old it is.
func TestLedgerIsSwept(t *testing.T) {
	t.Parallel()
	pgtest.Each(t, func(t *testing.T, dsn string) {
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
		if err := h.store.Maintain(hurry); err != nil { // who would wait for another's rows could also be waited for
			t.Fatal(err)
		}
		if err := other.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		rows, _ := h.pool.Query(t.Context(), h.in("SELECT feed, count(*) / count(DISTINCT shard) FROM @.checkpoints GROUP BY feed"))
		got := map[string]int{}
		var feed string
		var left int
		if _, err := pgx.ForEachRow(rows, []any{&feed, &left}, func() error { got[feed] = left; return nil }); err != nil {
			t.Fatal(err)
		}
		if want := map[string]int{"idle": 1, "busy": 10}; !maps.Equal(got, want) {
			t.Errorf("rows of each shard: %v, want %v", got, want)
		}
	})
}

func (h *house) deliverAll(feed string) {
	h.t.Helper()
	if _, err := deliver(h.t.Context(), h.open(feed)); err != nil {
		h.t.Fatal(err)
	}
}

// mustReclaim runs the housekeeping and holds that it has, or has not, emptied the log.
func (h *house) mustReclaim(want bool) {
	h.t.Helper()
	before := h.count()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for range 100 { // something else, such as autovacuum, may hold the slot just now
		if err := h.store.Maintain(h.t.Context()); err != nil {
			h.t.Fatal(err)
		}
		if !want || h.count() == 0 {
			break
		}
		<-tick.C
		h.lookAgain() // as relays do: what others had in flight at the last read may have ended since
	}
	if after := h.count(); want && (before == 0 || after != 0) || !want && after != before {
		h.t.Errorf("%d messages became %d; want them gone: %t", before, after, want)
	}
}

// lookAgain has every feed read on.
func (h *house) lookAgain() {
	h.t.Helper()
	rows, err := h.pool.Query(h.t.Context(), h.in("SELECT name FROM @.feeds"))
	if err != nil {
		h.t.Fatal(err)
	}
	feeds, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		h.t.Fatal(err)
	}
	for _, name := range feeds {
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
