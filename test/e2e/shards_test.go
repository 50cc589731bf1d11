package e2e_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
	"github.com/postrider/postrider/test/fleet"
	"github.com/postrider/postrider/test/proof/history"
)

// TestShardsChange repeatedly changes the number of shards, and the ring, under full load, while
// relays are killed and suspended. No message is lost, invented or reordered.
func TestShardsChange(t *testing.T) {
	need.Alone(t, "takes leases of a second or two, which a busy machine lets lapse")
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		testShardsChange(t, dsn, true, 12_000, 300_000)
	})
}

// TestShardsChangeSoon does the same with relays that are not killed, and limits how long keys wait
// for a change.
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
	operator, migrator := s.operators()
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
		_, err := operator.ChangeShards(t.Context(), admin.By{Who: "test"}, "default", 8)
		return !errors.Is(err, admin.ErrNoFeed)
	})
	changes := 0
	for going := true; going || changes < 4; changes++ {
		start := time.Now()
		for finished := false; !finished; {
			var err error
			finished, err = operator.ChangeShards(t.Context(), admin.By{Who: "test"}, "default", []int{32, 3, 8}[changes%3])
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

// TestShardsChangeCrash kills the server during changes of shards and of the ring, under load.
func TestShardsChangeCrash(t *testing.T) {
	need.Long(t, "crashes servers a dozen times")
	need.Alone(t, "takes leases of a second or two, which a busy machine lets lapse")
	for _, version := range []string{"15", "18"} {
		t.Run("pg"+version, func(t *testing.T) {
			testShardsChangeCrash(t, "postgres"+version+"@e2e", pgtest.Env(t, "POSTRIDER_TEST_POSTGRES"+version+"_E2E"))
		})
	}
}

func testShardsChangeCrash(t *testing.T, server, dsn string) {
	s := newScene(t, dsn, postgres.Layout{Shards: 8})
	t.Cleanup(func() { s.recover(server) })
	s.mustSyncToDisk()
	operator, migrator := s.operators()
	arrivals := s.follow(s.log)
	relays := s.relays(fleet.Config{Slow: 3 * time.Millisecond, Maintain: 300 * time.Millisecond}, 2)
	writers := s.write(history.Plan{Writers: 8, Keys: 200, Pause: 5 * time.Millisecond, Pauses: 0.3, Bulk: 6})
	const crashes = 12
	for i := range crashes {
		before := arrivals.count()
		if _, ok := s.eventually(20*time.Second, func() bool { return arrivals.count() > before+500 }); !ok {
			t.Fatalf("crash %d: no load", i)
		}
		change := func() (bool, error) {
			if i%3 == 2 {
				return true, migrator.SetRing(t.Context(), []int{4, 9, 3, 6}[i/3%4], time.Duration(1+i%4)*time.Second)
			}
			return operator.ChangeShards(t.Context(), admin.By{Who: "test"}, "default", []int{32, 3, 8}[(i-i/3)%3])
		}
		begun := make(chan struct{})
		go func() {
			defer close(begun)
			_, _ = change() // may fail when the server is killed
		}()
		time.Sleep(rand.N(300 * time.Millisecond))
		s.services("kill", server)
		<-begun
		s.recover(server)
		s.tryEventually(func() error {
			done, err := change()
			if err == nil && !done {
				err = errors.New("the change has not ended")
			}
			return err
		})
	}
	writers.Stop()
	verdict := s.settle(30 * time.Second)
	relays.StopAll()
	t.Logf("%d crashes, %d transactions failed: %s", crashes, writers.Errors(), verdict)
	if !verdict.Clean() {
		t.Error("the histories differ")
	}
}

// operators returns what changes shards and the ring.
func (s *scene) operators() (*postgres.Admin, *postgres.Migrator) {
	s.t.Helper()
	migrator, err := s.db.Migrator(postgres.Layout{})
	if err != nil {
		s.t.Fatal(err)
	}
	return s.db.Admin(), migrator
}
