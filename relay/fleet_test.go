package relay_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/feeds"
)

const lease = 10 * time.Second

// TestCleanStop stops relays at random moments under load. The next one continues at once and
// repeats nothing.
func TestCleanStop(t *testing.T) {
	bothModes(t, func(t *testing.T, keepsOrder bool) {
		random := rand.New(rand.NewPCG(3, 4))
		w := newWorld(t, 4)
		s := &sink{w: w, keepsOrder: keepsOrder, delay: func() time.Duration { return 7 * time.Millisecond }}
		w.commitMany(5000, 60)
		f := &faults{Store: w.store}
		f.set(func(op string) error {
			if op == "Settle" {
				time.Sleep(2 * time.Millisecond) // let the relay make progress
			}
			return nil
		})
		for range 40 {
			r := start(t, f, s, relay.Config{BatchSize: 100, ReadAhead: 500})
			time.Sleep(time.Duration(random.IntN(60_000)) * time.Microsecond)
			w.commitMany(100, 60)
			begin := time.Now()
			r.stop()
			if took := time.Since(begin); took > time.Second {
				t.Errorf("the stop took %v", took)
			}
		}
		_, before, _ := w.counts()
		r := start(t, w.store, s, relay.Config{})
		time.Sleep(50 * time.Millisecond) // far less than a lease
		if _, distinct, _ := w.counts(); distinct == before {
			t.Error("the next relay has not gone on at once")
		}
		w.await(time.Minute)
		r.stop()
		w.check()
		w.checkNothingRepeated()
	})
}

// TestStopMendsHoles: a stop right after a partial failure first defers the messages in front of
// confirmed ones.
func TestStopMendsHoles(t *testing.T) {
	bothModes(t, func(t *testing.T, keepsOrder bool) {
		w := newWorld(t, 1)
		failures := 5
		failed := make(chan struct{})
		s := &sink{w: w, keepsOrder: keepsOrder, fail: func(m *postrider.Message) (error, bool) {
			if m.Key == "k0" && failures > 0 {
				if failures--; failures == 4 {
					close(failed)
				}
				return postrider.Unavailable(errOdd), false
			}
			return nil, true
		}}
		w.commitMany(100, 10)
		r := start(t, w.store, s, relay.Config{})
		<-failed
		r.stop()
		_, first, _ := w.counts()
		if first == 0 {
			t.Error("nothing was received")
		}
		r = start(t, w.store, s, relay.Config{})
		w.await(time.Minute)
		r.stop()
		w.check()
		w.checkNothingRepeated()
	})
}

// TestHangingPublisher: a stop waits for DrainTimeout, then cancels, and still releases the shards.
func TestHangingPublisher(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		w := newWorld(t, 2)
		w.commitMany(100, 10)
		s := &sink{w: w, delay: func() time.Duration { return time.Hour }}
		f := &faults{Store: w.store}
		r := start(t, f, s, relay.Config{DrainTimeout: 3 * time.Second})
		time.Sleep(time.Second)
		begin := time.Now()
		r.cancel()
		r.cancel()
		if err := <-r.done; err == nil || !strings.Contains(err.Error(), "DrainTimeout") {
			t.Errorf("Run returned %v, want a word about DrainTimeout", err)
		}
		if took := time.Since(begin); took != 3*time.Second {
			t.Errorf("the stop took %v", took)
		}
		if f.count("Release") != 1 || f.count("Close") != 1 {
			t.Error("the shards were not released, or the feed not closed")
		}
		s.delay = nil
		r = start(t, w.store, s, relay.Config{})
		w.await(time.Second)
		r.stop()
		w.check()
	})
}

// TestFleet: relays share the shards fairly while they join and leave cleanly under load, and
// repeat nothing.
func TestFleet(t *testing.T) {
	bothModes(t, func(t *testing.T, keepsOrder bool) {
		w := newWorld(t, 8)
		s := &sink{w: w, keepsOrder: keepsOrder, delay: func() time.Duration { return 3 * time.Millisecond }}
		stopLoad := load(w)
		var fleet []*running
		for range 5 {
			fleet = append(fleet, start(t, w.store, s, relay.Config{}))
			time.Sleep(3 * time.Second)
			checkShare(t, fleet, 8)
		}
		for len(fleet) > 1 {
			fleet[0].stop()
			fleet = fleet[1:]
			time.Sleep(3 * time.Second)
			checkShare(t, fleet, 8)
		}
		stopLoad()
		w.await(time.Minute)
		fleet[0].stop()
		w.check()
		w.checkNothingRepeated()
	})
}

// load commits messages until it is stopped.
func load(w *world) (stop func()) {
	var end atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !end.Load() {
			w.commitMany(20, 40)
			time.Sleep(20 * time.Millisecond)
		}
	}()
	return func() { end.Store(true); <-done }
}

func checkShare(t *testing.T, fleet []*running, shards int) {
	t.Helper()
	sum := 0
	for _, r := range fleet {
		s := r.Stats()
		sum += s.Shards
		if s.Members != len(fleet) || s.Shards < shards/len(fleet) || s.Shards > (shards+len(fleet)-1)/len(fleet) {
			t.Errorf("a relay holds %d of %d shards and knows %d of %d members", s.Shards, shards, s.Members, len(fleet))
		}
	}
	if sum != shards {
		t.Errorf("%d of %d shards are held", sum, shards)
	}
}

// TestCrash disconnects one of three relays from store and destination. The others take over when
// its leases have expired.
func TestCrash(t *testing.T) {
	bothModes(t, func(t *testing.T, keepsOrder bool) {
		w := newWorld(t, 8)
		healthy := &sink{w: w, keepsOrder: keepsOrder}
		dead := make(chan struct{})
		end := make(chan struct{})
		f := &faults{Store: w.store}
		crashing := &sink{w: w, keepsOrder: keepsOrder, fail: func(*postrider.Message) (error, bool) {
			select {
			case <-dead:
				<-end
				return errOdd, false
			default:
				return nil, true
			}
		}}
		crashed := start(t, f, crashing, relay.Config{DrainTimeout: time.Second})
		fleet := []*running{start(t, w.store, healthy, relay.Config{}), start(t, w.store, healthy, relay.Config{})}
		stopLoad := load(w)
		time.Sleep(10 * time.Second)
		checkShare(t, append(fleet, crashed), 8)

		close(dead)
		f.set(func(string) error { <-end; return errOdd })
		time.Sleep(lease + 3*time.Second)
		stopLoad()
		w.await(time.Second)
		checkShare(t, fleet, 8)
		for _, r := range fleet {
			r.stop()
		}
		close(end)
		crashed.cancel()
		if err := <-crashed.done; err == nil {
			t.Error("the crashed relay reports a clean stop")
		}
		w.check()
	})
}

// TestPaused blocks a relay's calls of the store for three leases, as SIGSTOP would, while its
// destination stays reachable. The relay sends nothing after its lease, learns that it was
// replaced, and rejoins as a new member.
func TestPaused(t *testing.T) {
	bothModes(t, func(t *testing.T, keepsOrder bool) {
		w := newWorld(t, 2)
		f := &faults{Store: w.store}
		slow := func() time.Duration { return 200 * time.Millisecond }
		w.commitMany(4000, 40)
		cfg := relay.Config{BatchSize: 10, ReadAhead: 2000, BalanceInterval: 5 * time.Second}
		a := start(t, f, &sink{w: w, name: "a", keepsOrder: keepsOrder, delay: slow}, cfg)
		time.Sleep(4 * time.Second)

		resume := make(chan struct{})
		paused := time.Now()
		f.set(func(string) error { <-resume; return nil })
		b := start(t, w.store, &sink{w: w, name: "b", keepsOrder: keepsOrder}, relay.Config{})
		time.Sleep(3 * lease)
		if n := a.Stats().Buffered; n == 0 {
			t.Error("the paused relay has nothing left to send: the test is too small")
		}
		f.set(nil)
		resumed := time.Now()
		close(resume)
		time.Sleep(time.Second) // calls have timed out and are retried
		if n := a.Stats().Fenced; n != 2 {
			t.Errorf("%d shards fenced, want 2", n)
		}
		w.await(time.Minute)
		time.Sleep(10 * time.Second)
		if a, b := a.Stats().Shards, b.Stats().Shards; a != 1 || b != 1 {
			t.Errorf("the relays hold %d and %d shards, want 1 each", a, b)
		}
		a.stop()
		b.stop()
		w.check()

		byA := 0
		for key, deliveries := range w.received {
			seen := make(map[int]bool)
			for _, d := range deliveries {
				if d.by == "a" && d.at.After(paused) {
					byA++
					// Messages that it sends after rejoining were not sent before: b has released
					// cleanly.
					if d.at.After(paused.Add(lease)) && (d.at.Before(resumed) || seen[d.seq]) {
						t.Errorf("key %s: %d was sent %v after the pause began", key, d.seq, d.at.Sub(paused))
					}
				}
				seen[d.seq] = true
			}
		}
		if byA == 0 {
			t.Error("the paused relay has not used the rest of its lease")
		}
	})
}

// TestStoreDown: all calls of the store fail for much longer than a lease. The relay stops sending
// when its lease may have expired, and continues where it was when the store is back.
func TestStoreDown(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		w := newWorld(t, 2)
		f := &faults{Store: w.store}
		w.commitMany(4000, 40)
		log := newLogbook()
		r := start(t, f, &sink{w: w, keepsOrder: true, delay: func() time.Duration { return 200 * time.Millisecond }},
			relay.Config{BatchSize: 10, ReadAhead: 2000, Logger: slogOf(log)})
		time.Sleep(4 * time.Second)
		f.set(func(string) error { return errOdd })
		time.Sleep(lease)
		before := r.Stats().Published
		time.Sleep(10 * time.Minute)
		if after := r.Stats().Published; after != before {
			t.Errorf("%d messages were sent without a lease", after-before)
		}
		f.set(nil)
		w.await(time.Hour)
		r.stop()
		w.check()
		w.checkNothingRepeated()
		for _, what := range []string{"settling", "balancing"} {
			if n := log.count("WARN relay: " + what + " fails, trying again"); n < 1 || n > 22 {
				t.Errorf("%d lines about failed %s in 10 minutes", n, what)
			}
		}
		if log.count("INFO relay: settling has recovered") != 1 {
			t.Error("the recovery was not logged")
		}
	})
}

// TestStart: a relay starts while its database is down or not ready, and works as soon as it can.
func TestStart(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		w := newWorld(t, 2)
		w.commitMany(100, 10)
		trouble := fmt.Errorf("version 0: %w", feeds.ErrSchema)
		f := &faults{Store: w.store}
		f.set(func(op string) error { return trouble })
		r := start(t, f, &sink{w: w}, relay.Config{})
		time.Sleep(time.Minute)
		if got := r.Stats().Paused; got != trouble.Error() {
			t.Errorf("paused because of %q, want %q", got, trouble)
		}
		foreign := fmt.Errorf("cluster 7: %w", feeds.ErrForeign)
		f.set(func(op string) error {
			if op == "Balance" {
				return foreign
			}
			return nil
		})
		time.Sleep(time.Minute)
		if got := r.Stats(); got.Paused != foreign.Error() || got.Published != 0 {
			t.Errorf("stats %+v, want a pause because of %q", got, foreign)
		}
		f.set(nil)
		w.await(10 * time.Second)
		if got := r.Stats().Paused; got != "" {
			t.Errorf("paused because of %q", got)
		}

		// The database is replaced while the relay runs.
		f.set(func(op string) error {
			if op == "Balance" {
				f.forget(2)
				return foreign
			}
			return nil
		})
		time.Sleep(2 * time.Second)
		w.commitMany(100, 10)
		before := r.Stats().Published
		time.Sleep(time.Minute)
		if got := r.Stats(); got.Shards != 0 || got.Published != before {
			t.Errorf("stats %+v, want no shards and no progress", got)
		}
		f.set(nil)
		w.await(10 * time.Second)
		r.stop()
		w.check()
	})
}

// TestReset resets the store at random calls. Settled messages are not sent again; the rest is.
func TestReset(t *testing.T) {
	bothModes(t, func(t *testing.T, keepsOrder bool) {
		w := newWorld(t, 4)
		f := &faults{Store: w.store}
		var calls atomic.Int64
		f.set(func(op string) error {
			if op != "Open" && op != "Release" && op != "Close" && calls.Add(1)%499 == 0 {
				f.forget(4)
				return fmt.Errorf("%s: %w", op, feeds.ErrReset)
			}
			return nil
		})
		s := &sink{w: w, keepsOrder: keepsOrder, delay: func() time.Duration { return 5 * time.Millisecond }}
		r := start(t, f, s, relay.Config{BatchSize: 10})
		stopLoad := load(w)
		time.Sleep(30 * time.Second)
		stopLoad()
		w.await(time.Minute)
		if got := r.Stats(); got.Resets < 5 {
			t.Errorf("stats %+v, want many resets", got)
		}
		f.set(nil)
		r.stop()
		w.check()
		if total, _, repeated := w.counts(); repeated > total/5 {
			t.Errorf("%d of %d messages were repeated", repeated, total)
		}
	})
}

// TestStopStress stops relays at random times, twice each, while every call fails now and then.
// Leaked goroutines fail the test.
func TestStopStress(t *testing.T) {
	runs := 100
	if testing.Short() {
		runs = 30
	}
	bubble(t, "", func(t *testing.T) {
		random := rand.New(rand.NewPCG(5, 6))
		w := newWorld(t, 3)
		w.commitMany(5000, 100)
		for i := range runs {
			f := &faults{Store: w.store}
			var calls atomic.Int64
			f.set(func(op string) error {
				switch calls.Add(1) % 11 {
				case 1:
					return errOdd
				case 5:
					if i%2 == 0 && op != "Open" {
						f.forget(3)
						return feeds.ErrReset
					}
				}
				return nil
			})
			s := &sink{w: w, keepsOrder: i%3 == 0, fail: moody(uint64(i), 0.1)}
			r := start(t, f, s, relay.Config{BatchSize: 20, DrainTimeout: time.Second})
			time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
			r.cancel()
			go r.cancel()
			<-r.done
			if err := r.Run(t.Context()); err == nil {
				t.Fatal("a second Run was allowed")
			}
		}
		time.Sleep(lease) // leases that were not released expire
		r := start(t, w.store, &sink{w: w, keepsOrder: true}, relay.Config{})
		w.await(time.Minute)
		r.stop()
		w.check()
	})
}

func TestStopBeforeStart(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		w := newWorld(t, 1)
		r, err := relay.New(w.store, &sink{w: w}, relay.Config{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := r.Run(ctx); err != nil {
			t.Error(err)
		}
		if err := r.Run(t.Context()); err == nil || errors.Is(err, context.Canceled) {
			t.Errorf("the second Run returned %v", err)
		}
	})
}

// TestMaintains: the relay calls Maintain periodically, also after a failure.
func TestMaintains(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		w := newWorld(t, 1)
		m := &maintained{Store: w.store}
		r := start(t, m, &sink{w: w}, relay.Config{MaintainInterval: time.Minute})
		time.Sleep(time.Hour)
		r.stop()
		if n := m.rounds.Load(); n < 40 || n > 60 {
			t.Errorf("%d rounds in an hour", n)
		}
	})
}

type maintained struct {
	feeds.Store
	rounds atomic.Int64
}

func (m *maintained) Maintain(context.Context) error {
	if m.rounds.Add(1)%2 == 0 {
		return errOdd
	}
	return nil
}
