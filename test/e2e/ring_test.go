package e2e_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
	"github.com/postrider/postrider/test/fleet"
	"github.com/postrider/postrider/test/proof/history"
)

const (
	ringSlots  = 4
	ringPeriod = 2 * time.Second
	ringTurn   = ringSlots * ringPeriod
)

// TestRing rotates the ring quickly, under load, while one of two feeds is repeatedly stopped for
// more than a full rotation. No message is lost: slots that the feed has not passed are kept, and
// emptied again when it has caught up. Meanwhile no producer waits for a lock.
func TestRing(t *testing.T) {
	need.Alone(t, "takes leases of a second or two, which a busy machine lets lapse")
	t.Parallel()
	pgtest.Newest(t, testRing)
}

func testRing(t *testing.T, dsn string) {
	duration := 25 * time.Second
	if need.IsLong() {
		duration = 3 * time.Minute
	}
	s := newScene(t, dsn, postgres.Layout{Slots: ringSlots, Period: ringPeriod})
	slowLog := filepath.Join(t.TempDir(), "slow")
	const maintain = 300 * time.Millisecond
	s.relays(fleet.Config{Maintain: maintain}, 1)
	slow := s.relays(fleet.Config{Maintain: maintain, Feed: "slow", Log: slowLog}, 1)
	arrivals, slowArrivals := s.follow(s.log), s.follow(slowLog)

	start := time.Now()
	writers := s.write(history.Plan{Writers: 6, Keys: 200, Pause: 10 * time.Millisecond, Pauses: 0.5, Bulk: 6})
	probes := s.probe()
	away := 0
	for away == 0 || time.Since(start) < duration-2*ringTurn {
		away++
		s.mustHappen("both feeds deliver", func() bool { return arrivals.count() > 1000 && slowArrivals.count() > 1000 })
		slow.Stop(0)
		s.mustHappen("messages older than a turn are kept", func() bool { return s.oldest() > ringTurn+ringPeriod })
		kept := s.rows()
		slow.Restart(0)
		committed := s.committed()
		s.mustHappen("the slow feed catches up", func() bool { return slowArrivals.count() >= committed })
		back := time.Now()
		s.mustHappen("every slot is emptied again", func() bool { return s.oldest() < time.Since(back) })
		t.Logf("%d rows in the ring when the slow feed came back, %d now, under load", kept, s.rows())
	}
	writers.Stop()
	probes.stop()
	probes.check()
	if n := writers.Errors(); n > 0 {
		t.Errorf("%d transactions failed", n)
	}

	committed := s.committed()
	s.mustHappen("all is delivered", func() bool { return arrivals.count() >= committed && slowArrivals.count() >= committed })
	quiet := time.Now()
	s.mustHappen("the ring is empty", func() bool { return s.oldest() == 0 })
	t.Logf("empty %s after the last delivery; away %d times; %s", time.Since(quiet).Round(100*time.Millisecond), away, probes)
	for feed, log := range map[string]string{"default": s.log, "slow": slowLog} {
		verdict := s.check(s.arrived(log))
		t.Logf("%s: %s", feed, verdict)
		if !verdict.Clean() || len(verdict.Duplicates) > 0 {
			t.Errorf("%s: want no difference and no duplicate", feed)
		}
	}
}

// mustHappen waits for a condition that must hold within five rotations. It polls rarely: each read
// of the log locks every slot for a moment, and would keep the relays from emptying them.
func (s *scene) mustHappen(what string, yes func() bool) {
	s.t.Helper()
	const timeout = 2 * time.Minute // many processes share the machine
	end := time.Now().Add(timeout)
	tick := time.NewTicker(ringPeriod / 4)
	defer tick.Stop()
	for !yes() {
		if time.Now().After(end) {
			s.t.Fatalf("not within %s: %s", timeout, what)
		}
		<-tick.C
	}
}

func (s *scene) rows() (n int) { s.ask("SELECT count(*) FROM @.messages", &n); return n }

func (s *scene) committed() (n int) { s.ask("SELECT count(*) FROM @.facts", &n); return n }

// oldest returns the age of the oldest message in the log, or 0 if the log is empty. It must be
// quick: while it reads, no slot can be emptied.
func (s *scene) oldest() time.Duration {
	var seconds float64
	s.ask(`SELECT coalesce((SELECT date_part('epoch', clock_timestamp() - created_at)
		FROM @.messages ORDER BY xid LIMIT 1), 0)::float8`, &seconds)
	return time.Duration(seconds * float64(time.Second))
}
