package e2e_test

import (
	"errors"
	"testing"
	"time"

	"github.com/postrider/postrider/desk"
	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
	"github.com/postrider/postrider/test/fleet"
	"github.com/postrider/postrider/test/history"
)

// TestShardsChange changes the number of shards, and the ring, under full load, again and again, while relays are killed and paused: nothing
// is lost, invented or out of order.
func TestShardsChange(t *testing.T) {
	need.Alone(t, "takes leases of a second or two, which a busy machine lets lapse")
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		testShardsChange(t, dsn, true, 12_000, 300_000)
	})
}

// TestShardsChangeSoon does the same with relays that live, and holds how long keys wait for it.
func TestShardsChangeSoon(t *testing.T) {
	need.Alone(t, "measures how long keys wait")
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		if longest := testShardsChange(t, dsn, false, 12_000, 300_000); longest > 2*time.Second {
			t.Errorf("a change took %s", longest)
		}
	})
}

func testShardsChange(t *testing.T, dsn string, trouble bool, few, many int64) (longest time.Duration) {
	s := newScene(t, dsn, postgres.Layout{Shards: 8})
	messages := few
	if need.IsLong() {
		messages = many
	}
	const lease = 2 * time.Second
	relays := s.relays(fleet.Config{Lease: lease, Batch: 37, Ahead: 300, Slow: 4 * time.Millisecond, Maintain: 300 * time.Millisecond}, 3)
	operator, err := postgres.NewDesk(s.pool, s.cfg)
	if err != nil {
		t.Fatal(err)
	}
	migrator, err := postgres.NewMigrator(s.pool, s.cfg, postgres.Layout{})
	if err != nil {
		t.Fatal(err)
	}
	writers := s.write(history.Plan{Writers: 32, Keys: 200, Messages: messages, Pause: 100 * time.Millisecond, Pauses: 0.1, Bulk: 40})
	written := make(chan struct{})
	go func() { writers.Wait(); close(written) }()
	done, faults := make(chan struct{}), make(chan int, 1)
	faults <- 0
	if trouble {
		<-faults
		go func() { faults <- relays.Trouble(lease, done) }()
	}
	s.mustHappen("relays have opened the feed", func() bool {
		_, err := operator.ChangeShards(t.Context(), desk.By{Who: "test"}, "default", 8)
		return !errors.Is(err, desk.ErrNoFeed)
	})
	changes := 0
	for going := true; going || changes < 4; changes++ {
		start := time.Now()
		for finished := false; !finished; {
			finished, err = operator.ChangeShards(t.Context(), desk.By{Who: "test"}, "default", []int{32, 3, 8}[changes%3])
			if err != nil {
				t.Fatal(err)
			}
			if time.Since(start) > time.Minute {
				t.Fatalf("change %d does not end", changes)
			}
			time.Sleep(10 * time.Millisecond)
		}
		longest = max(longest, time.Since(start))
		if err := migrator.SetRing(t.Context(), []int{4, 9, 3}[changes%3], time.Duration(1+changes%3)*time.Second); err != nil {
			t.Fatal(err)
		}
		select {
		case <-written:
			going = false
		case <-time.After(200 * time.Millisecond):
		}
	}
	close(done)
	n := <-faults
	if failed := writers.Errors(); failed > 0 {
		t.Errorf("%d transactions failed", failed)
	}
	verdict := s.settle(time.Minute)
	relays.StopAll()
	t.Logf("%d changes, the longest took %s, %d faults", changes, longest.Round(time.Millisecond), n)
	s.mustBeClean(verdict, relays)
	return longest
}
