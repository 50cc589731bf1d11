package e2e_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
	"github.com/postrider/postrider/test/fleet"
	"github.com/postrider/postrider/test/proof/history"
)

// TestRestore moves a database to another cluster in the middle of a run. The relay then pauses and
// reports why. After a rebase everything arrives that was not settled in the ledger when the copy
// was taken, and everything written before the rebase; nothing that was settled arrives.
func TestRestore(t *testing.T) {
	need.Alone(t, "takes leases of a second or two, which a busy machine lets lapse")
	t.Parallel()
	for _, c := range []struct {
		name, from, to string
		move           func(s *scene, to string)
		long           bool // the others test all of it
	}{
		{"pg_dump from 15 to 15", "15", "15_E2E", (*scene).dumpAndRestore, true},
		{"pg_dump from 15 to 18", "15", "18", (*scene).dumpAndRestore, false},
		{"tables copied from 18 to 18", "18", "18_E2E", (*scene).copyTables, false}, // there is no pg_dump of 18 here
	} {
		if c.long && !need.IsLong() {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			testRestore(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES"+c.from), pgtest.Env(t, "POSTRIDER_TEST_POSTGRES"+c.to), c.move)
		})
	}
}

func testRestore(t *testing.T, from, to string, move func(*scene, string)) {
	old := newScene(t, from, postgres.Layout{})
	behindLog := old.log + ".behind"
	busy := old.relays(fleet.Config{Slow: 3 * time.Millisecond}, 1)
	behind := old.relays(fleet.Config{Feed: "behind", Log: behindLog}, 1)
	arrivals, behindArrivals := old.follow(old.log), old.follow(behindLog)
	writers := old.write(steady)
	old.mustHappen("both feeds deliver", func() bool { return arrivals.count() > 500 && behindArrivals.count() > 500 })
	behind.StopAll()
	enough := arrivals.count() + 2000
	old.mustHappen("one feed goes on", func() bool { return arrivals.count() > enough })

	database := newDatabase(t, to)
	before := arrivals.all()
	move(old, database) // under load
	after := arrivals.all()
	writers.Stop()
	busy.StopAll()

	s := old.movedTo(database)
	settled := s.settledByFeed()
	for id := range settled["default"] {
		if !after[id] {
			t.Errorf("the ledger has settled %s, which had not been delivered", id)
		}
	}
	busyAgain, behindAgain := s.carry("default"), s.carry("behind")
	s.mustBePaused(busyAgain, behindAgain)
	written := s.writeBeforeRebase()
	if _, err := s.db.Rebase(t.Context(), admin.By{Who: "test"}); err != nil {
		t.Fatal(err)
	}

	afterwards, err := s.commit("afterwards")
	if err != nil {
		t.Fatal(err)
	}
	written = append(written, afterwards...)
	waiting := s.committed()
	for _, c := range []*carrier{busyAgain, behindAgain} {
		done := settled[c.feed]
		s.mustHappen(c.feed+" delivers what is left", func() bool { return c.arrivals.count() >= waiting-len(done) })
		c.stop()
		for _, id := range written {
			if !c.arrivals.have(id) {
				t.Errorf("%s: %s, written here, has not arrived", c.feed, id)
			}
		}
		for id := range c.arrivals.all() {
			if done[id] {
				t.Errorf("%s: %s was settled and has been sent again", c.feed, id)
			}
		}
	}
	s.mustContinue(old.arrived(old.log), busyAgain)
	s.mustContinue(old.arrived(behindLog), behindAgain)
	t.Logf("committed at the copy: %d, settled: %d and %d; sent by both: %d delivered before the copy began and not settled, %d later",
		waiting-len(written), len(settled["default"]), len(settled["behind"]),
		common(busyAgain.arrivals.all(), before), common(busyAgain.arrivals.all(), arrivals.all())-common(busyAgain.arrivals.all(), before))
}

// TestClone copies a database within its cluster, where even the transaction IDs continue: only the
// database's OID shows that it is a copy.
func TestClone(t *testing.T) {
	need.Alone(t, "takes leases of a second or two, which a busy machine lets lapse")
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		old := newScene(t, newDatabase(t, dsn), postgres.Layout{})
		original := old.carry("default")
		for range 5 {
			if _, err := old.commit("a", "b", "c"); err != nil {
				t.Fatal(err)
			}
		}
		old.mustHappen("the original delivers", func() bool { return original.arrivals.count() == 15 })
		original.stop()
		left, err := old.commit("a", "b")
		if err != nil {
			t.Fatal(err)
		}
		s := old.movedTo(old.cloneDatabase())
		clone := s.carry("default")
		s.mustBePaused(clone)
		left = append(left, s.writeBeforeRebase()...)
		if _, err := s.db.Rebase(t.Context(), admin.By{Who: "test"}); err != nil {
			t.Fatal(err)
		}
		s.mustHappen("the clone delivers", func() bool { return clone.arrivals.have(left...) })
		clone.stop()
		if n := clone.arrivals.count(); n != len(left) {
			t.Errorf("%d messages were sent by the clone, want the %d that were left", n, len(left))
		}
		s.mustContinue(old.arrived(original.log), clone)
	})
}

// writeBeforeRebase commits messages while the relay still treats the database as foreign, some of
// them in subtransactions.
func (s *scene) writeBeforeRebase() []postrider.ID {
	s.t.Helper()
	ids, err := s.commit("new1", "new2")
	if err != nil {
		s.t.Fatal(err)
	}
	err = pgx.BeginFunc(s.t.Context(), s.pool, func(tx pgx.Tx) error {
		return pgx.BeginFunc(s.t.Context(), tx, func(savepoint pgx.Tx) error {
			inner, err := s.enqueue(savepoint, "new1", "new3")
			ids = append(ids, inner...)
			return err
		})
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return ids
}

// mustBePaused checks that relays try, send nothing, and report the reason and the remedy.
func (s *scene) mustBePaused(carriers ...*carrier) {
	s.t.Helper()
	for _, c := range carriers {
		s.mustHappen("the relay tries", func() bool { return c.relay.Stats().Balances > 3 })
		stats := c.relay.Stats()
		if !strings.Contains(stats.Paused, feeds.ErrForeign.Error()) || !strings.Contains(stats.Paused, "rebase") {
			s.t.Errorf("%s: the relay says %q", c.feed, stats.Paused)
		}
		if stats.Published > 0 || c.arrivals.count() > 0 {
			s.t.Errorf("%s: the relay has sent %d messages", c.feed, stats.Published)
		}
	}
}

// mustContinue checks that what the old relay had sent, as far as it is in this database, and then
// the new one, together are complete and in order.
func (s *scene) mustContinue(sent []history.Delivery, c *carrier) {
	s.t.Helper()
	known := s.facts()
	var all []history.Delivery
	for _, d := range sent {
		if known[d.ID.String()] {
			all = append(all, d)
		}
	}
	verdict := s.check(append(all, s.arrived(c.log)...))
	s.t.Logf("%s: %s", c.feed, verdict)
	if !verdict.Clean() {
		s.t.Errorf("%s: the histories differ", c.feed)
	}
}

func common(a, b map[string]bool) (n int) {
	for id := range a {
		if b[id] {
			n++
		}
	}
	return n
}
