package e2e_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
	"github.com/postrider/postrider/test/fleet"
	"github.com/postrider/postrider/test/proof/history"
)

// steady is a load without long pauses.
var steady = history.Plan{Writers: 8, Keys: 200, Pause: 5 * time.Millisecond, Pauses: 0.3, Bulk: 6}

// TestTakeOver checks that another relay takes over the shards of a killed one within its lease and
// two seconds.
func TestTakeOver(t *testing.T) {
	need.Alone(t, "takes leases of a second or two, which a busy machine lets lapse")
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		s := newScene(t, dsn, postgres.Layout{})
		const lease = 3 * time.Second
		relays := s.relays(fleet.Config{Lease: lease}, 2)
		s.awaitOwners(2)
		writers := s.write(steady)
		relays.Kill(0)
		took, ok := s.eventually(lease+2*time.Second, func() bool { return s.owners()[relays.Name(1)] == 8 })
		t.Logf("taken over %s after the kill", took.Round(10*time.Millisecond))
		if !ok {
			t.Errorf("shards are held by %v", s.owners())
		}
		writers.Stop()
		s.mustBeClean(s.settle(20*time.Second), relays)
	})
}

// TestPausedRelay checks that a relay that was suspended past its lease is fenced and changes
// nothing.
func TestPausedRelay(t *testing.T) {
	need.Alone(t, "takes leases of a second or two, which a busy machine lets lapse")
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		s := newScene(t, dsn, postgres.Layout{})
		const lease = time.Second
		relays := s.relays(fleet.Config{Lease: lease, Slow: 3 * time.Millisecond}, 2)
		s.awaitOwners(2)
		writers := s.write(steady)
		for range 3 {
			s.awaitOwners(2)
			before := s.lastRow()
			relays.Pause(0, 3*lease)
			// After another member has taken a shard, and until it releases it, the suspended relay
			// writes no row.
			if n := s.rowsOutOfTurn(before); n > 0 {
				t.Errorf("%d ledger rows were written by a relay that had been replaced", n)
			}
		}
		writers.Stop()
		s.mustBeClean(s.settle(20*time.Second), relays)
	})
}

// TestRollingRestart checks that clean stops cause no duplicates.
func TestRollingRestart(t *testing.T) {
	need.Alone(t, "takes leases of a second or two, which a busy machine lets lapse")
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		cycles := 4
		if need.IsLong() {
			cycles = 20
		}
		s := newScene(t, dsn, postgres.Layout{})
		relays := s.relays(fleet.Config{Slow: 3 * time.Millisecond}, 3)
		s.awaitOwners(3)
		writers := s.write(steady)
		for range cycles {
			for place := range 3 {
				relays.Stop(place)
				relays.Restart(place)
			}
			s.awaitOwners(3)
		}
		writers.Stop()
		verdict := s.settle(20 * time.Second)
		t.Logf("%d restarts: %s", 3*cycles, verdict)
		if !verdict.Clean() || len(verdict.Duplicates) > 0 {
			t.Errorf("want no fault and no duplicate: %+v", verdict.Duplicates)
		}
	})
}

func (s *scene) mustBeClean(verdict history.Verdict, relays *fleet.Fleet) {
	s.t.Helper()
	s.t.Log(verdict)
	if !verdict.Clean() {
		s.t.Error("the histories differ")
	}
	for _, d := range verdict.Duplicates {
		if !relays.Faulted(d.First.Process) && !relays.Faulted(d.Again.Process) {
			s.t.Fatalf("a duplicate that no fault explains: %+v", d)
		}
	}
}

// owners returns how many shards each relay owns, by its name.
func (s *scene) owners() map[string]int {
	s.t.Helper()
	rows, err := s.pool.Query(s.t.Context(), `
		SELECT (SELECT m.name FROM `+s.cfg.Schema+`.members m WHERE m.member = c.member AND NOT m.gone LIMIT 1), count(*)
		FROM `+s.cfg.Schema+`.cursors c WHERE NOT c.released AND c.until > clock_timestamp() GROUP BY 1`, pgx.QueryExecModeExec)
	if err != nil {
		s.t.Fatal(err)
	}
	held := map[string]int{}
	var name string
	var n int
	if _, err := pgx.ForEachRow(rows, []any{&name, &n}, func() error { held[name] = n; return nil }); err != nil {
		s.t.Fatal(err)
	}
	return held
}

// awaitOwners waits until the shards are distributed evenly over the given number of relays.
func (s *scene) awaitOwners(relays int) {
	s.t.Helper()
	_, ok := s.eventually(30*time.Second, func() bool {
		held := s.owners()
		total := 0
		for _, n := range held {
			if n > (8+relays-1)/relays {
				return false
			}
			total += n
		}
		return len(held) == relays && total == 8
	})
	if !ok {
		s.t.Fatalf("8 shards are not shared by %d relays: %v", relays, s.owners())
	}
}

// lastRow returns the time of the newest ledger row.
func (s *scene) lastRow() (at time.Time) {
	s.t.Helper()
	err := s.pool.QueryRow(s.t.Context(), "SELECT max(at) FROM "+s.cfg.Schema+".checkpoints", pgx.QueryExecModeExec).Scan(&at)
	if err != nil {
		s.t.Fatal(err)
	}
	return at
}

// rowsOutOfTurn counts ledger rows since a time that follow another member's row whose lease was
// neither released nor expired.
func (s *scene) rowsOutOfTurn(since time.Time) (n int) {
	s.t.Helper()
	err := s.pool.QueryRow(s.t.Context(), `
		SELECT count(*) FROM `+s.cfg.Schema+`.checkpoints c JOIN `+s.cfg.Schema+`.checkpoints p
		  ON p.feed = c.feed AND p.shard = c.shard AND p.n = c.n - 1
		WHERE c.at > $1 AND c.member IS DISTINCT FROM p.member AND NOT p.released AND p.until > c.at`,
		pgx.QueryExecModeExec, since).Scan(&n)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}
