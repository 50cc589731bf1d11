package relay_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider/relay"
)

// TestIdle: an idle relay costs the database at most 25 calls a second.
func TestIdle(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		w := newWorld(t, 8)
		f := &faults{Store: w.store}
		r := start(t, f, &sink{w: w}, relay.Config{})
		time.Sleep(time.Second)
		ops := []string{"Read", "Settle", "Balance", "Release"}
		before := f.count(ops...)
		time.Sleep(time.Minute)
		if n := f.count(ops...) - before; n > 25*60 {
			t.Errorf("%d calls in a minute", n)
		}
		if got := r.Stats(); got.Shards != 8 || got.Quota != 8 || got.Members != 1 || got.Fenced != 0 {
			t.Errorf("stats %+v, want all 8 shards of 1 member", got)
		}
		r.stop()
	})
}

// TestPolling: under load the relay reads every PollMin, at low rates as rarely as messages arrive.
// Without messages the interval grows to 50 ms at once, and then with the idle time up to PollMax.
func TestPolling(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		w := newWorld(t, 8)
		f := &faults{Store: w.store}
		r := start(t, f, &sink{w: w, keepsOrder: true}, relay.Config{})
		time.Sleep(time.Second)

		before, settles := f.count("Read"), f.count("Settle")
		for range 1000 { // one a millisecond
			w.commitMany(1, 100)
			time.Sleep(time.Millisecond)
		}
		if n := f.count("Read") - before; n < 185 || n > 210 {
			t.Errorf("%d reads in a second of traffic, want 200, or fewer while the first message is waited for", n)
		}
		if n := f.count("Settle") - settles; n < 15 || n > 22 {
			t.Errorf("%d settles in a second of traffic, want 20", n)
		}
		before = f.count("Read")
		for range 1000 {
			w.commitMany(20, 100)
			time.Sleep(time.Millisecond)
		}
		if n := f.count("Read") - before; n < 60 || n > 75 {
			t.Errorf("%d reads in a second of much traffic, want 67", n)
		}
		for _, few := range []struct{ perSecond, reads int }{{100, 110}, {20, 45}} {
			before = f.count("Read")
			for range few.perSecond {
				w.commitMany(1, 100)
				time.Sleep(time.Second / time.Duration(few.perSecond))
			}
			if n := f.count("Read") - before; n > few.reads {
				t.Errorf("%d reads in a second with %d messages, want at most %d", n, few.perSecond, few.reads)
			}
		}
		for _, idle := range []struct {
			after time.Duration
			reads int
		}{{time.Second, 20}, {10 * time.Second, 6}, {20 * time.Second, 4}} {
			time.Sleep(idle.after)
			before = f.count("Read")
			time.Sleep(time.Second)
			if n := f.count("Read") - before; n < idle.reads-1 || n > idle.reads+1 {
				t.Errorf("%d reads in a second %v after the others, want %d", n, idle.after, idle.reads)
			}
		}

		// Growth: 37.5, 50, 50, … ms after a single message.
		var mu sync.Mutex
		var at []time.Duration
		begin := time.Now()
		f.set(func(op string) error {
			mu.Lock()
			defer mu.Unlock()
			if op == "Read" {
				at = append(at, time.Since(begin))
			}
			return nil
		})
		w.commitMany(1, 1)
		time.Sleep(time.Second)
		f.set(nil)
		mu.Lock()
		defer mu.Unlock()
		if gap := at[1] - at[0]; gap != 25*time.Millisecond {
			t.Errorf("after the message the next read follows after %v, want five times PollMin", gap)
		}
		for i := 2; i < len(at); i++ {
			gap, last := at[i]-at[i-1], at[i-1]-at[i-2]
			if want := min(last*3/2, 50*time.Millisecond); gap != want {
				t.Errorf("gap %d is %v after %v, want %v", i, gap, last, want)
			}
		}
		r.stop()
		w.check()
	})
}

// TestWake: Wake makes the relay deliver at once, and frequent calls cost no more than polling at
// PollMin.
func TestWake(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		w := newWorld(t, 8)
		f := &faults{Store: w.store}
		r := start(t, f, &sink{w: w}, relay.Config{PollMin: 5 * time.Millisecond, PollMax: time.Minute})
		time.Sleep(10 * time.Minute)

		w.commitMany(1, 1)
		r.Wake()
		synctest.Wait() // without any virtual time
		if total, distinct, _ := w.counts(); distinct != total {
			t.Error("the message was not delivered at once")
		}

		before := f.count("Read")
		for range 10_000 {
			r.Wake()
			time.Sleep(100 * time.Microsecond)
		}
		if n := f.count("Read") - before; n > 205 {
			t.Errorf("%d reads in a second", n)
		}
		r.stop()
		r.Wake() // harmless
	})
}

// TestPromptSettle: after an idle time the first progress is settled at once.
func TestPromptSettle(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		w := newWorld(t, 8)
		f := &faults{Store: w.store}
		r := start(t, f, &sink{w: w}, relay.Config{Lease: time.Hour, BalanceInterval: time.Minute})
		time.Sleep(time.Second)
		before := f.count("Settle")
		w.commitMany(1, 1)
		r.Wake()
		time.Sleep(5 * time.Millisecond) // PollMin: the last read may have been just now
		if n := f.count("Settle") - before; n != 1 {
			t.Errorf("%d settles, want 1", n)
		}
		r.stop()
	})
}

// TestDrainsBacklogWithoutPolling: while the store has more messages, the relay waits for no timer.
func TestDrainsBacklogWithoutPolling(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		w := newWorld(t, 8)
		w.commitMany(50_000, 100)
		cfg := relay.Config{PollMin: time.Hour, PollMax: time.Hour, ReadAhead: 1000}
		r := start(t, w.store, &sink{w: w, keepsOrder: true}, cfg)
		time.Sleep(time.Millisecond)
		if total, distinct, _ := w.counts(); distinct != total {
			t.Errorf("%d of %d delivered", distinct, total)
		}
		r.stop()
		w.check()
		w.checkNothingRepeated()
	})
}
