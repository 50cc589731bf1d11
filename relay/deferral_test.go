package relay_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/store/feeds"
)

// commitAs is like commit with one message for each key, changed by the test.
func (w *world) commitAs(change func(m *postrider.Message), keys ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	tx := w.store.Begin()
	for _, key := range keys {
		m := postrider.Event("happened", postrider.Aggregate{}, []byte(strconv.Itoa(w.committed[key])))
		m.Key = key
		change(&m)
		if err := w.store.Enqueue(w.t.Context(), tx, m); err != nil {
			w.t.Error(err)
		}
		w.committed[key]++
		w.total++
	}
	if err := tx.Commit(); err != nil {
		w.t.Error(err)
	}
}

// refuser rejects messages until the test ends that.
type refuser struct {
	mu   sync.Mutex
	says map[string]error // by key and number, such as "k1/0", or by key
}

func refusing(err error, names ...string) *refuser {
	r := &refuser{says: make(map[string]error)}
	for _, name := range names {
		r.says[name] = err
	}
	return r
}

func (r *refuser) mend() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.says)
}

func (r *refuser) fail(m *postrider.Message) (error, bool) { //nolint:revive // as a sink calls it
	r.mu.Lock()
	defer r.mu.Unlock()
	err := errors.Join(r.says[m.Key], r.says[m.Key+"/"+string(m.Payload)])
	return err, err == nil
}

// deferredCounts returns the number of deferred messages by status.
func deferredCounts(w *world) map[feeds.Status]int {
	counts, err := w.store.Count(w.t.Context(), admin.Filter{}, 0)
	if err != nil {
		w.t.Error(err)
	}
	return counts
}

func checkDeferred(w *world, want map[feeds.Status]int) {
	w.t.Helper()
	if got := deferredCounts(w); fmt.Sprint(got) != fmt.Sprint(want) {
		w.t.Errorf("deferred are %v, want %v", got, want)
	}
}

// TestSkip: with order Skip, later messages of a key overtake a failed one, in their own order, and
// no key is blocked.
func TestSkip(t *testing.T) {
	for name, err := range map[string]error{"permanent": postrider.Permanent(errOdd), "unknown": errOdd} {
		t.Run(name, func(t *testing.T) {
			bothModes(t, func(t *testing.T, keepsOrder bool) {
				w := newWorld(t, 1)
				mood := refusing(err, "k1/2")
				s := &sink{w: w, keepsOrder: keepsOrder, fail: mood.fail}
				w.commitMany(400, 4)
				r := start(t, w.store, s, relay.Config{Order: relay.Skip, BatchSize: 40, Retry: retry.Policy{Attempts: 4}})
				for range 25 {
					time.Sleep(time.Second)
					w.commitMany(4, 4)
				}
				time.Sleep(time.Second)
				if _, distinct, _ := w.counts(); distinct != 499 {
					t.Errorf("%d messages were received, want all but one", distinct)
				}
				if got := r.Stats(); got.Dead != 1 || got.Deferred != 1 || got.Blocked != 0 || got.Buffered != 0 {
					t.Errorf("stats %+v, want one dead letter that blocks nothing", got)
				}
				mood.mend()
				if n, err := w.store.Act(t.Context(), admin.By{}, admin.Retry, admin.Filter{}, 0); n != 1 || err != nil {
					t.Errorf("retried %d, %v", n, err)
				}
				w.await(5 * time.Second)
				r.stop()
				w.checkNothingRepeated()
				var order []int
				for _, d := range w.received["k1"] {
					order = append(order, d.seq)
				}
				if last := len(order) - 1; order[last] != 2 || !slices.IsSorted(order[:last]) {
					t.Errorf("k1 was received as %v, want 2 at the end and the others in order", order)
				}
			})
		})
	}
}

// TestPlainErrorInFullWindow: a message that fails without a class, while everything else in the
// window has arrived, does not block its shard.
func TestPlainErrorInFullWindow(t *testing.T) {
	for _, batch := range []int{1, 20} {
		for _, order := range []string{relay.Strict, relay.Skip} {
			t.Run(fmt.Sprintf("%s/%d", order, batch), func(t *testing.T) {
				bothModes(t, func(t *testing.T, keepsOrder bool) {
					w := newWorld(t, 1)
					mood := refusing(errOdd, "k0/3", "k1/0", "k1/1")
					s := &sink{w: w, keepsOrder: keepsOrder, fail: mood.fail}
					w.commitMany(1000, 10)
					r := start(t, w.store, s, relay.Config{Order: order, BatchSize: batch, ReadAhead: 100})
					time.Sleep(5 * time.Minute)
					if _, distinct, _ := w.counts(); distinct < 800 {
						t.Errorf("%d messages were received, want all of 8 keys at least", distinct)
					}
					r.cancel()
					<-r.done
				})
			})
		}
	}
}

// TestPlainErrorBeforeItsKey: a message that always fails is deferred even if only messages of its
// own key, which are not sent, are behind it.
func TestPlainErrorBeforeItsKey(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		w := newWorld(t, 1)
		w.commitMany(20, 1)
		r := start(t, w.store, postrider.PublisherFunc(func(_ context.Context, m postrider.Message) error {
			if string(m.Payload) == "0" {
				return errOdd
			}
			w.receive(&m, "")
			return nil
		}), relay.Config{BatchSize: 5, ReadAhead: 10, Order: relay.Skip, Retry: retry.Policy{Attempts: 1}})
		time.Sleep(5 * time.Minute)
		if _, distinct, _ := w.counts(); distinct != 19 {
			t.Errorf("%d messages were received, want 19", distinct)
		}
		checkDeferred(w, map[feeds.Status]int{feeds.StatusDead: 1})
		r.stop()
	})
}

// TestBackoffSeries: the backoff follows the list and repeats its last element.
func TestBackoffSeries(t *testing.T) {
	bothModes(t, func(t *testing.T, keepsOrder bool) {
		w := newWorld(t, 1)
		l := newLedger()
		s := &sink{w: w, keepsOrder: keepsOrder, fail: func(m *postrider.Message) (error, bool) {
			l.note(m.Key)
			return postrider.Permanent(errOdd), false
		}}
		series := []time.Duration{20 * time.Millisecond, 10 * time.Second, time.Second}
		w.commitMany(20, 20)
		r := start(t, w.store, s, relay.Config{Retry: retry.Policy{Pauses: series, Attempts: 7}})
		time.Sleep(5 * time.Minute)
		r.stop()
		checkDeferred(w, map[feeds.Status]int{feeds.StatusDead: 20})
		for i, want := range append(series, time.Second, time.Second, time.Second) {
			for key := range 20 {
				at := l.times("k" + strconv.Itoa(key))
				if len(at) != 7 {
					t.Fatalf("k%d was tried %d times", key, len(at))
				}
				if gap := at[i+1] - at[i]; gap < want || gap > want+5*time.Millisecond {
					t.Errorf("pause %d of k%d is %v, want %v", i, key, gap, want)
				}
			}
		}
	})
}

// TestBackoffMax: without a list, the backoff doubles up to a limit, which includes its random
// part.
func TestBackoffMax(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		w := newWorld(t, 1)
		l := newLedger()
		s := &sink{w: w, fail: func(m *postrider.Message) (error, bool) {
			l.note(m.Key)
			return postrider.Permanent(errOdd), false
		}}
		w.commit("k")
		r := start(t, w.store, s, relay.Config{Retry: retry.Policy{First: 3 * time.Second, Most: 10 * time.Second, Attempts: 6}})
		time.Sleep(5 * time.Minute)
		r.stop()
		at := l.times("k")
		for i, want := range []time.Duration{3 * time.Second, 6 * time.Second, 10 * time.Second, 10 * time.Second, 10 * time.Second} {
			if gap := at[i+1] - at[i]; gap < want || gap > min(want*3/2, 10*time.Second)+5*time.Millisecond {
				t.Errorf("pause %d is %v, want %v to half as much again, and 10 s at most", i, gap, want)
			}
		}
		if len(at) != 6 {
			t.Errorf("%d attempts, want 6", len(at))
		}
	})
}

// TestDeliverAfter: no message is received before its time, nor much later, and no other waits for
// it, not even in its own key.
func TestDeliverAfter(t *testing.T) {
	bothModes(t, func(t *testing.T, keepsOrder bool) {
		w := newWorld(t, 2)
		begin := time.Now()
		s := &sink{w: w, keepsOrder: keepsOrder}
		for i := range 100 {
			w.commitAs(func(m *postrider.Message) { m.DeliverAfter = begin.Add(time.Duration(i) * time.Minute) }, "late"+strconv.Itoa(i))
			w.commit("k0", "k1")
		}
		w.commitAs(func(m *postrider.Message) { m.DeliverAfter = begin.Add(30 * time.Second) }, "k0")
		w.commit("k0")
		r := start(t, w.store, s, relay.Config{})
		time.Sleep(time.Second)
		if _, distinct, _ := w.counts(); distinct != 202 { // and the first scheduled one
			t.Errorf("%d messages were received, want 202", distinct)
		}
		if got := r.Stats(); got.Blocked != 0 || got.Buffered != 0 {
			t.Errorf("stats %+v, want nothing blocked", got)
		}
		time.Sleep(50*time.Minute + 123*time.Millisecond)
		r.stop() // one message becomes due while no relay runs, and one while another does
		time.Sleep(10 * time.Minute)
		back := time.Since(begin)
		r = start(t, w.store, s, relay.Config{})
		w.await(time.Hour)
		r.stop()
		w.checkNothingRepeated()
		checkDeferred(w, map[feeds.Status]int{})
		for i := range 100 {
			due := time.Duration(i) * time.Minute
			at := w.received["late"+strconv.Itoa(i)][0].at.Sub(begin)
			if at < due || at > due+time.Second && (due < 50*time.Minute || at > back+2*time.Second && at > due+2*time.Second) {
				t.Errorf("message %d was received after %v, want %v", i, at, due)
			}
		}
	})
}

// TestPriority: among the messages that were read, larger priorities go first, but never before an
// earlier message of their key.
func TestPriority(t *testing.T) {
	bothModes(t, func(t *testing.T, keepsOrder bool) {
		w := newWorld(t, 1)
		s := &sink{w: w, keepsOrder: keepsOrder, delay: func() time.Duration { return 10 * time.Millisecond }}
		for i := range 50 {
			w.commitMany(100, 100)
			w.commitAs(func(m *postrider.Message) { m.Priority = 1 + i%2*8 }, "k7", "urgent"+strconv.Itoa(i))
		}
		begin := time.Now()
		r := start(t, w.store, s, relay.Config{BatchSize: 10, ReadAhead: 6000})
		w.await(time.Hour)
		r.stop()
		w.check()
		w.checkNothingRepeated()
		for i := range 50 {
			at, limit := w.received["urgent"+strconv.Itoa(i)][0].at.Sub(begin), 200*time.Millisecond
			if i%2 == 1 {
				limit = 100 * time.Millisecond
			}
			if at > limit {
				t.Errorf("urgent message %d was received after %v", i, at)
			}
		}
		if last := w.received["k99"][49].at.Sub(begin); last < time.Second {
			t.Errorf("all is over after %v: nothing had to wait", last)
		}
	})
}

// TestPriorityWithFailures: priorities do not break the order within keys if messages fail.
func TestPriorityWithFailures(t *testing.T) {
	for seed := range uint64(20) {
		bubble(t, strconv.FormatUint(seed, 10), func(t *testing.T) {
			w := newWorld(t, 1)
			random := rand.New(rand.NewPCG(seed, 5))
			s := &sink{w: w, keepsOrder: seed%2 == 0, fail: moody(seed, 0.1), delay: func() time.Duration { return time.Millisecond }}
			r := start(t, w.store, s, relay.Config{BatchSize: 1 + random.IntN(30), Retry: retry.Policy{First: 100 * time.Millisecond, Attempts: 100}})
			for range 200 {
				w.commitAs(func(m *postrider.Message) { m.Priority = max(0, random.IntN(8)-4) }, "k"+strconv.Itoa(random.IntN(6)), "k9")
				if random.IntN(4) == 0 {
					time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
				}
			}
			w.await(time.Hour)
			r.stop()
			w.check()
		})
	}
}

// TestWholeCallFails: a publisher that keeps order may lose its connection and with it a whole
// call, also one of deferred messages. Messages behind the first of a key are then neither counted
// nor sent before it.
func TestWholeCallFails(t *testing.T) {
	for name, err := range map[string]error{"unknown": errOdd, "permanent": postrider.Permanent(errOdd)} {
		bubble(t, name, func(t *testing.T) {
			w := newWorld(t, 1)
			l := newLedger()
			failures := 8
			r := start(t, w.store, orderly{func(_ context.Context, msgs []postrider.Message) []error {
				for i := range msgs {
					l.note(string(msgs[i].Payload))
				}
				if failures > 0 {
					failures--
					return repeat(err, len(msgs))
				}
				for i := range msgs {
					w.receive(&msgs[i], "")
				}
				return nil
			}}, relay.Config{Retry: retry.Policy{Attempts: 20, First: 100 * time.Millisecond, Most: time.Second}})
			for range 30 {
				w.commit("k")
			}
			w.await(time.Minute)
			r.stop()
			w.check()
			first := l.times("0")
			for i := 1; i < 30; i++ {
				for _, at := range l.times(strconv.Itoa(i)) {
					if at < first[len(first)-1] && !slices.Contains(first, at) {
						t.Fatalf("message %d was sent after %v, without the first one", i, at)
					}
				}
			}
		})
	}
}

// orderly is a publisher that keeps order.
type orderly struct{ publisher }

func (orderly) KeepsOrder() bool { return true }

// TestConfigOfFailures: New returns all errors of the retry policies at once.
func TestConfigOfFailures(t *testing.T) {
	store := newWorld(t, 1).store
	for _, c := range []struct {
		cfg  relay.Config
		want []string
	}{
		{relay.Config{Order: relay.Skip, Retry: retry.Policy{Attempts: 1, Pauses: []time.Duration{time.Second}}}, nil},
		{relay.Config{Order: "sloppy", Retry: retry.Policy{Attempts: -1, First: -time.Second}},
			[]string{`Order is "sloppy"`, `"strict" or "skip"`, "Retry: Attempts has no limit", "Retry: First is negative: -1s"}},
		{relay.Config{Retry: retry.Policy{First: time.Hour, Most: time.Minute}}, []string{"Retry: First (1h0m0s)", "Most (1m0s)"}},
		{relay.Config{Outage: retry.Policy{Pauses: []time.Duration{time.Second, time.Minute}}}, nil},
		{relay.Config{Outage: retry.Policy{Attempts: 3, MaxAge: time.Hour}}, []string{"Outage: Attempts is 3", "Outage: MaxAge is 1h0m0s"}},
		{relay.Config{Retry: retry.Policy{Most: -time.Second}}, []string{"Retry: Most is negative: -1s"}},
		{relay.Config{Retry: retry.Policy{Pauses: []time.Duration{time.Second, 0}}}, []string{"Retry: Pauses has 0s"}},
		{relay.Config{Retry: retry.Policy{Pauses: []time.Duration{time.Second}, Most: time.Minute}}, []string{"Retry: Pauses ([1s])", "Most (1m0s)"}},
	} {
		_, err := relay.New(store, &sink{}, c.cfg)
		if (err == nil) != (len(c.want) == 0) {
			t.Errorf("%+v: %v", c.cfg, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("no %q in: %v", want, err)
			}
		}
	}
}
