package postgres_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// change takes a step of a change of shards.
func (h *house) change(shards int) (done bool) {
	h.t.Helper()
	done, err := h.db.Admin().ChangeShards(h.t.Context(), admin.By{Who: "test"}, "f", shards)
	if err != nil {
		h.t.Fatal(err)
	}
	return done
}

// finish takes the remaining steps.
func (h *house) finish(shards int) {
	h.t.Helper()
	for range 10 {
		if h.change(shards) {
			return
		}
	}
	h.t.Fatalf("the change to %d shards does not end", shards)
}

// TestChangeOfShards takes a change of shards step by step. The shards are at different positions,
// with a deferred message, an in-flight transaction that their snapshots list, and one that they do
// not.
func TestChangeOfShards(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, postgres.Layout{Shards: 2})
		// Write one message for each shard, with a key of the old number of shards.
		write := func(w interface{ exec(string) }, types string) {
			t.Helper()
			w.exec(`INSERT INTO @.messages (type, key) SELECT DISTINCT ON (s) '` + types + `' || s, 'k' || i
				FROM generate_series(1, 50) i, @.shard_of('k' || i, 2) s ORDER BY s, i`)
		}
		s := h.sit("f")
		late := h.begin()
		write(late, "late")
		h.exec("INSERT INTO @.messages (type, key) SELECT 'deferred', 'deferred ' || i FROM generate_series(1, 9) i")
		if n := len(s.readAll()); n != 9 {
			t.Fatalf("got %d messages, want 9", n)
		}
		var deferrals []feeds.Deferral
		for _, b := range s.latest {
			for i := range b.Messages {
				deferrals = append(deferrals, feeds.Deferral{Batch: b, Index: i, Status: feeds.StatusDead, Attempts: 1})
			}
		}
		if err := s.Defer(t.Context(), deferrals); err != nil {
			t.Fatal(err)
		}
		s.readAll()
		s.settle()
		write(h, "b")
		expectTypes(t, "one shard", s.read(0), "b0")
		unseen := h.begin()
		write(unseen, "unseen")
		write(h, "c")

		if h.change(5) {
			t.Fatal("the change did not wait for the holder")
		}
		s.settle() // fails if a shard is lost
		if s.balance(); s.share.Quota != 0 || !s.share.Moving {
			t.Fatalf("got %+v, want a quota of 0", s.share)
		}
		s.release(s.marks())
		if h.change(5) {
			t.Fatal("the change did not wait for the shard that is behind")
		}
		if s.balance(); !slices.Equal(s.share.Shards, []int{1}) {
			t.Fatalf("the member holds %v, want the shard that is behind", s.share.Shards)
		}
		expectTypes(t, "up to the place of the other", s.readAll(), "b1")
		if s.balance(); !slices.Equal(s.share.Stopped, []int{1}) {
			t.Fatalf("got %+v, want the shard stopped", s.share)
		}
		s.release(s.marks())
		h.finish(5)
		const wrong = "SELECT count(*) FROM @.deferred WHERE shard <> @.shard_of(order_key, 5)"
		if n := h.number(wrong); n > 0 {
			t.Errorf("%d of 9 messages that are deferred are in a wrong shard", n)
		}
		if s.balance(); len(s.share.Shards) != 5 {
			t.Fatalf("the member holds %v, want five shards", s.share.Shards)
		}
		expectTypes(t, "after the change", s.readAll(), "c0", "c1")
		late.commit()
		expectTypes(t, "after the change", s.readAll(), "late0", "late1")
		unseen.commit()
		expectTypes(t, "after the change", s.readAll(), "unseen0", "unseen1")
	})
}

// TestChangeBesideLateWriters ends transactions while no member owns a shard: the new shards must
// find what was in flight at their first position, from the ledger alone.
func TestChangeBesideLateWriters(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, postgres.Layout{Shards: 2})
		s := h.sit("f")
		late := h.begin()
		late.exec("INSERT INTO @.messages (type) VALUES ('late')")
		h.exec("INSERT INTO @.messages (type) SELECT 'a' FROM generate_series(1, 3)")
		expectTypes(t, "before", s.readAll(), "a", "a", "a")
		unseen := h.begin()
		unseen.exec("INSERT INTO @.messages (type) VALUES ('unseen')")
		s.leave()
		h.finish(3)
		late.commit()
		unseen.commit()
		s = h.sit("f")
		expectTypes(t, "after the change", s.readAll(), "late", "unseen")
		alone := h.begin() // no older transaction is open
		alone.exec("INSERT INTO @.messages (type) VALUES ('alone')")
		s.leave()
		h.finish(2)
		alone.commit()
		expectTypes(t, "after the second change", h.sit("f").readAll(), "alone")
	})
}

// TestChangeFencesOldHolders verifies that a member which was suspended while its shards were
// removed and created again does not own the new ones.
func TestChangeFencesOldHolders(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, postgres.Layout{Shards: 4})
		old := h.sit("f")
		h.exec("UPDATE @.checkpoints SET at = at - interval '1 hour', until = until - interval '1 hour'")
		h.finish(2)
		h.finish(4)
		lost, err := old.Settle(t.Context(), old.marks())
		slices.Sort(lost)
		if err != nil || !slices.Equal(lost, []int{0, 1, 2, 3}) {
			t.Errorf("the old member has lost %v, want all; %v", lost, err)
		}
	})
}

// TestNobodyTakesAShardDuringAStep verifies that a member waits while a change of shards reads the
// cursors.
func TestNobodyTakesAShardDuringAStep(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, postgres.Layout{Shards: 2})
		f := h.open("f")
		defer f.Close(t.Context())
		step := h.begin()
		step.exec(`SELECT pg_advisory_xact_lock(hashtextextended('"` + h.cfg.Schema + `".balance/f', 0))`) // as advance_move does
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if share, err := f.Balance(ctx); err == nil {
			t.Errorf("a member took %v", share.Shards)
		}
	})
}
