package relay_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/postridertest"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/store/feeds"
)

// TestBlockedElsewhere: keys that one relay has blocked are blocked for the next one, whether the
// first was stopped or died, and continue in order.
func TestBlockedElsewhere(t *testing.T) {
	test := func(t *testing.T, keepsOrder bool, end func(f *faults, r *running), pause time.Duration) {
		w := newWorld(t, 2)
		mood := refusing(postrider.Permanent(errOdd), "k1/3", "k2/0")
		s := &sink{w: w, keepsOrder: keepsOrder, fail: mood.fail}
		w.commitMany(50, 5)
		f := &faults{Store: w.store}
		first := start(t, f, s, relay.Config{Retry: retry.Policy{First: time.Hour, Most: time.Hour}})
		time.Sleep(time.Second)
		end(f, first)
		w.commitMany(50, 5)
		second := start(t, w.store, s, relay.Config{Retry: retry.Policy{First: time.Hour, Most: time.Hour}})
		time.Sleep(pause)
		if _, distinct, _ := w.counts(); distinct != 63 {
			t.Errorf("%d messages were received, want those of 3 keys and 3 of another", distinct)
		}
		if got := second.Stats(); got.Blocked != 2 || got.Buffered != 0 {
			t.Errorf("stats %+v, want 2 blocked keys", got)
		}
		mood.mend()
		w.commitMany(50, 5)
		if n, err := w.store.Act(t.Context(), admin.By{}, admin.Retry, admin.Filter{Head: true}, 0); n != 2 || err != nil {
			t.Errorf("retried %d, %v", n, err)
		}
		w.await(5 * time.Second)
		if got := second.Stats(); got.Blocked != 0 {
			t.Errorf("stats %+v, want no blocked key", got)
		}
		second.stop()
		w.check()
		w.checkNothingRepeated()
		checkDeferred(w, map[feeds.Status]int{})
	}
	t.Run("stop", func(t *testing.T) {
		bothModes(t, func(t *testing.T, keepsOrder bool) {
			test(t, keepsOrder, func(_ *faults, r *running) { r.stop() }, time.Second)
		})
	})
	t.Run("crash", func(t *testing.T) {
		bothModes(t, func(t *testing.T, keepsOrder bool) {
			test(t, keepsOrder, func(f *faults, r *running) {
				f.set(func(string) error { return errOdd })
				r.cancel()
				<-r.done
			}, 2*lease)
		})
	})
}

// TestSecondRelayTakesHalf: a relay that takes over half of the shards knows their blocked keys.
func TestSecondRelayTakesHalf(t *testing.T) {
	bothModes(t, func(t *testing.T, keepsOrder bool) {
		w := newWorld(t, 4)
		keys := []string{"k0/1", "k1/1", "k2/1", "k3/1", "k4/1", "k5/1", "k6/1", "k7/1"}
		mood := refusing(postrider.Permanent(errOdd), keys...)
		s := &sink{w: w, keepsOrder: keepsOrder, fail: mood.fail}
		w.commitMany(200, 20)
		cfg := relay.Config{Retry: retry.Policy{First: 10 * time.Second}}
		a := start(t, w.store, s, cfg)
		time.Sleep(time.Second)
		b := start(t, w.store, s, cfg)
		time.Sleep(5 * time.Second)
		checkShare(t, []*running{a, b}, 4)
		if n, m := a.Stats().Blocked, b.Stats().Blocked; n+m != 8 || m == 0 {
			t.Errorf("%d and %d keys are blocked, want 8 in all", n, m)
		}
		w.commitMany(200, 20)
		time.Sleep(time.Second)
		if _, distinct, _ := w.counts(); distinct != 400-8*19 {
			t.Errorf("%d messages were received, want those of 12 keys and the first of 8", distinct)
		}
		mood.mend()
		w.await(time.Minute)
		a.stop()
		b.stop()
		w.check()
		w.checkNothingRepeated()
	})
}

// suspectStore is a store with messages that relays have died while sending.
type suspectStore struct {
	script
	mu       sync.Mutex
	started  map[string]int
	deferred []feeds.Deferral

	before    []feeds.Deferred // messages that were deferred before
	concluded map[string]feeds.Conclusion
	again     map[string]time.Time // when concluded messages are due again
}

func (c *suspectStore) Open(context.Context, string, feeds.Member) (feeds.Feed, error) {
	return c, nil
}

func (c *suspectStore) Suspect(_ context.Context, start feeds.Start) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := strconv.FormatInt(start.Seq, 10)
	if start.Batch != nil {
		name = start.Batch.Messages[start.Index].Type
	}
	c.started[name]++
	return c.started[name], nil
}

func (c *suspectStore) Defer(_ context.Context, msgs []feeds.Deferral) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deferred = append(c.deferred, msgs...)
	return nil
}

func (c *suspectStore) Due(context.Context, feeds.DueRequest) (feeds.Due, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	due := feeds.Due{Next: time.Second}
	for _, d := range c.before {
		if end, ok := c.concluded[d.Type]; !ok || !end.Delivered && end.Status == feeds.StatusRetry && !time.Now().Before(c.again[d.Type]) {
			due.Messages = append(due.Messages, d)
		}
	}
	return due, nil
}

func (c *suspectStore) Conclude(_ context.Context, done []feeds.Conclusion) ([]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range done {
		name := strconv.FormatInt(d.Seq, 10)
		c.concluded[name], c.again[name] = d, time.Now().Add(d.Delay)
	}
	return nil, nil
}

// newSuspectDeferred returns a store with suspect deferred messages, in a shard whose other
// messages make progress.
func newSuspectDeferred(n int) *suspectStore {
	c := &suspectStore{started: make(map[string]int), concluded: make(map[string]feeds.Conclusion), again: make(map[string]time.Time)}
	c.balance = func(context.Context) (feeds.Share, error) {
		return feeds.Share{Shards: []int{0}, Quota: 1, Members: 1, Deferred: true, Orphans: []int{0}}, nil
	}
	for i, m := range batch(0, n).Messages {
		c.before = append(c.before, feeds.Deferred{Message: m, Seq: int64(i), Status: feeds.StatusRetry, Blocking: true, Attempts: 1})
	}
	return c
}

// newSuspectStore returns a store whose first messages of a shard are suspect.
func newSuspectStore(n int) *suspectStore {
	reads := 0
	return &suspectStore{started: make(map[string]int), script: script{
		balance: func(context.Context) (feeds.Share, error) {
			return feeds.Share{Shards: []int{0}, Quota: 1, Members: 1, Suspects: []int{0}, Orphans: []int{0}}, nil
		},
		read: func(context.Context, []feeds.Demand) ([]feeds.Batch, error) {
			if reads++; reads == 1 {
				return []feeds.Batch{batch(0, n)}, nil
			}
			return nil, nil
		},
	}}
}

// play runs a relay for a second, which must send one message at a time, and returns what it has
// sent.
func (c *suspectStore) play(t *testing.T) (r *running, sent []string) {
	r = start(t, c, publisher(func(_ context.Context, msgs []postrider.Message) []error {
		if len(msgs) > 1 {
			t.Errorf("%d messages were sent at once", len(msgs))
		}
		sent = append(sent, msgs[0].Type)
		return nil
	}), relay.Config{})
	time.Sleep(time.Second)
	r.stop()
	return r, sent
}

// TestSuspectMessage: after relays have died, messages are sent one by one. A message that was
// started twice and never finished is deferred unsent, and the others arrive.
func TestSuspectMessage(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		for before := range 4 {
			c := newSuspectStore(5)
			c.started["2"] = before
			_, sent := c.play(t)
			want := "0 1 2 3 4"
			if before >= 2 {
				want = "0 1 3 4"
				if len(c.deferred) != 1 || c.deferred[0].Index != 2 || c.deferred[0].Status != feeds.StatusDead ||
					!c.deferred[0].Blocking || !strings.Contains(c.deferred[0].Cause, "died") {
					t.Errorf("begun %d times before: deferred %+v, want message 2 as dead", before, c.deferred)
				}
			}
			if got := strings.Join(sent, " "); got != want {
				t.Errorf("begun %d times before: sent %s, want %s", before, got, want)
			}
		}
	})
}

// TestSlowSuspect: if the store records the start of a message only after the deadline of its call,
// the message does not count as sent.
func TestSlowSuspect(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		c := slowSuspectStore{newSuspectStore(5), new(atomic.Bool)}
		var sent []string
		r := start(t, c, publisher(func(_ context.Context, msgs []postrider.Message) []error {
			sent = append(sent, msgs[0].Type)
			return nil
		}), relay.Config{PublishTimeout: time.Second})
		time.Sleep(time.Minute)
		r.stop()
		if got := strings.Join(sent, " "); got != "0 1 2 3 4" {
			t.Errorf("sent %s, want all five", got)
		}
	})
}

// TestSuspectAsked: the start of a message is recorded after the destination was asked about it. A
// relay that dies while it asks says nothing against the message.
func TestSuspectAsked(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		c := newSuspectStore(1)
		balance := c.balance
		c.balance = func(ctx context.Context) (feeds.Share, error) {
			share, err := balance(ctx)
			share.Unsure = map[int]time.Duration{0: time.Second}
			return share, err
		}
		var asked atomic.Int64
		r := start(t, c, asking{asks: func() error {
			if asked.Add(1) < 4 {
				c.mu.Lock()
				defer c.mu.Unlock()
				if len(c.started) > 0 {
					t.Error("the start was recorded before the destination has answered")
				}
				return postrider.Unavailable(errOdd)
			}
			return nil
		}}, relay.Config{})
		time.Sleep(time.Minute)
		r.stop()
		if asked.Load() < 4 || c.started["0"] != 1 {
			t.Errorf("asked %d times, and started %v, want one start", asked.Load(), c.started)
		}
	})
}

// asking is a destination that can be asked what it has.
type asking struct{ asks func() error }

func (a asking) Publish(context.Context, []postrider.Message) []error { return nil }
func (a asking) Close() error                                         { return nil }
func (a asking) Recall(_ context.Context, names []string, _ time.Time, _ func(string)) []error {
	return slices.Repeat([]error{a.asks()}, len(names))
}

// slowSuspectStore is slow once, and ignores its context.
type slowSuspectStore struct {
	*suspectStore
	slow *atomic.Bool
}

func (c slowSuspectStore) Open(context.Context, string, feeds.Member) (feeds.Feed, error) {
	return c, nil
}

func (c slowSuspectStore) Suspect(ctx context.Context, start feeds.Start) (int, error) {
	if !c.slow.Swap(true) {
		time.Sleep(2 * time.Second)
	}
	_, err := c.suspectStore.Suspect(ctx, start)
	return 1, err
}

// TestSuspectFarBehind: a failing message keeps the position where it is, so the message that
// crashes relays may be as far behind it as the relay reads ahead.
func TestSuspectFarBehind(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		const far = 55
		c := newSuspectStore(far + 1)
		c.started[strconv.Itoa(far)] = 2
		r := start(t, c, publisher(func(_ context.Context, msgs []postrider.Message) []error {
			if len(msgs) > 1 {
				t.Errorf("%d messages were sent at once", len(msgs))
			}
			switch msgs[0].Type {
			case strconv.Itoa(far):
				t.Error("the message that crashes relays was sent")
			case "0":
				return []error{errOdd}
			}
			return nil
		}), relay.Config{BatchSize: 10, ReadAhead: 60})
		time.Sleep(10 * time.Second)
		r.stop()
		if len(c.deferred) != 2 || c.deferred[0].Index != 0 || c.deferred[0].Status != feeds.StatusRetry ||
			c.deferred[1].Index != far || c.deferred[1].Status != feeds.StatusDead {
			t.Errorf("deferred %+v, want message 0 to be tried again and message %d as dead", c.deferred, far)
		}
	})
}

// TestSuspectInOutage: attempts that finish are not counted as crashes. During an outage no message
// becomes a dead letter because one relay has started it many times.
func TestSuspectInOutage(t *testing.T) {
	for name, err := range map[string]error{"unavailable": postrider.Unavailable(errOdd), "unknown": errOdd} {
		bubble(t, name, func(t *testing.T) {
			c := newSuspectStore(5)
			var up atomic.Bool
			sent := 0
			r := start(t, c, publisher(func(_ context.Context, msgs []postrider.Message) []error {
				if !up.Load() {
					return repeat(err, len(msgs))
				}
				sent += len(msgs)
				return nil
			}), relay.Config{})
			time.Sleep(2 * time.Second)
			up.Store(true)
			time.Sleep(10 * time.Second)
			r.stop()
			if len(c.deferred) > 0 || sent != 5 {
				t.Errorf("%d messages were sent, and deferred are %+v", sent, c.deferred)
			}
		})
	}
}

// TestSuspectDeferred: after a relay has died, deferred messages are sent one by one. One that was
// started twice and never finished becomes a dead letter unsent, and the others arrive.
func TestSuspectDeferred(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		for before := range 4 {
			c := newSuspectDeferred(5)
			c.started["2"] = before
			r, sent := c.play(t)
			want, dead := "0 1 2 3 4", int64(0)
			if before >= 2 {
				want, dead = "0 1 3 4", 1
				if got := c.concluded["2"]; got.Delivered || got.Status != feeds.StatusDead || got.Attempts != 1+before ||
					!strings.Contains(got.Cause, "died") {
					t.Errorf("begun %d times before: concluded %+v, want it dead", before, got)
				}
			}
			if got := strings.Join(sent, " "); got != want || r.Stats().Dead != dead || len(c.concluded) != 5 {
				t.Errorf("begun %d times before: sent %s, want %s; stats %+v", before, got, want, r.Stats())
			}
		}
	})
}

// TestSuspectsGoTogetherAgain: deferred messages are sent in larger calls again after enough of
// them were sent alone.
func TestSuspectsGoTogetherAgain(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		c := newSuspectDeferred(8)
		var sizes []int
		r := start(t, c, publisher(func(_ context.Context, msgs []postrider.Message) []error {
			sizes = append(sizes, len(msgs))
			return nil
		}), relay.Config{BatchSize: 2})
		time.Sleep(time.Second)
		r.stop()
		if want := []int{1, 1, 1, 1, 2, 2}; !slices.Equal(sizes, want) {
			t.Errorf("messages went in calls of %v, want %v", sizes, want)
		}
		if len(c.started) != 4 {
			t.Errorf("the starts of %d messages were noted, want 4", len(c.started))
		}
	})
}

// TestSuspectDeferredInOutage: attempts that finish are not counted as crashes, and a message that the
// destination rejects does not delay others, although each is sent alone.
func TestSuspectDeferredInOutage(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		c := newSuspectDeferred(5)
		var up, all atomic.Bool
		var sent atomic.Int64
		r := start(t, c, publisher(func(_ context.Context, msgs []postrider.Message) []error {
			if !up.Load() || msgs[0].Type == "0" && !all.Load() {
				return repeat(postrider.Unavailable(errOdd), len(msgs))
			}
			sent.Add(int64(len(msgs)))
			return nil
		}), relay.Config{})
		time.Sleep(time.Minute)
		up.Store(true)
		time.Sleep(15 * time.Second)
		if n := sent.Load(); n != 4 {
			t.Errorf("%d messages were sent, want all but one", n)
		}
		all.Store(true)
		time.Sleep(15 * time.Second)
		r.stop()
		for name, got := range c.concluded {
			if !got.Delivered || got.Attempts > 1 {
				t.Errorf("message %s was concluded as %+v", name, got)
			}
		}
		if n := sent.Load(); n != 5 || r.Stats().Dead > 0 {
			t.Errorf("%d messages were sent; stats %+v", n, r.Stats())
		}
	})
}

// TestSuspectBehindAnother: a message that crashes relays waits behind one that is rejected, while
// others of its shard make progress. It crashes a few relays and becomes a dead letter; the rest
// arrives. If an operator retries it, it is sent.
func TestSuspectBehindAnother(t *testing.T) {
	bothModes(t, func(t *testing.T, keepsOrder bool) {
		w := newWorld(t, 1)
		mood := refusing(postrider.Permanent(errOdd), "k1/0")
		injector := postridertest.Inject(t, postridertest.Faults{})
		var process *postridertest.Process
		var harmless atomic.Bool
		s := &sink{w: w, keepsOrder: keepsOrder, fail: func(m *postrider.Message) (error, bool) {
			if m.Key == "k1" && string(m.Payload) == "1" && !harmless.Load() {
				process.Kill()
				return errOdd, false
			}
			return mood.fail(m)
		}}
		var r *running
		deaths := 0
		for deferredCounts(w)[feeds.StatusDead] == 0 {
			w.commitMany(30, 3)
			process = injector.Process()
			r = start(t, process.Store(w.store), s, relay.Config{BatchSize: 10, ReadAhead: 20, Retry: retry.Policy{First: 5 * time.Second}})
			time.Sleep(3 * time.Second)
			mood.mend()
			time.Sleep(30 * time.Second)
			if process.Dead() {
				r.cancel()
				<-r.done
				if deaths++; deaths > 3 {
					t.Fatalf("%d relays have died, want one unnoticed and two that have noted what they send", deaths)
				}
				time.Sleep(2 * lease)
			}
		}
		w.commitMany(30, 3)
		time.Sleep(time.Minute)
		harmless.Store(true)
		if n, err := w.store.Act(t.Context(), admin.By{}, admin.Retry, admin.Filter{Head: true}, 0); n != 1 || err != nil {
			t.Errorf("retried %d, %v", n, err)
		}
		w.await(time.Minute)
		r.stop()
		w.check()
		checkDeferred(w, map[feeds.Status]int{})
	})
}

// TestLoneFailure: a message that fails without a class is not counted as the cause while no other
// message is sent. As soon as another one succeeds, it is deferred, and ends as a dead letter. The
// worker does not count as failing when nothing is left.
func TestLoneFailure(t *testing.T) {
	bothModes(t, func(t *testing.T, keepsOrder bool) {
		w := newWorld(t, 1)
		mood := refusing(errOdd, "k0")
		w.commit("k0")
		r := start(t, w.store, &sink{w: w, keepsOrder: keepsOrder, fail: mood.fail}, relay.Config{PollMax: 10 * time.Second})
		time.Sleep(3 * time.Hour)
		if got := r.Stats(); got.Dead+got.Deferred != 0 || got.Failing != 1 {
			t.Errorf("stats %+v, want it to wait", got)
		}
		w.commit("k1")
		time.Sleep(time.Hour)
		if got := r.Stats(); got.Dead != 1 || got.Failing != 0 || got.Published != 1 {
			t.Errorf("stats %+v, want a dead letter, and no failing shard", got)
		}
		r.stop()
		checkDeferred(w, map[feeds.Status]int{feeds.StatusDead: 1})
	})
}

// deferFaults is a store whose calls for deferred messages fail at times.
type deferFaults struct {
	feeds.Store
	mu   sync.Mutex
	fail func(op string) error
}

func (f *deferFaults) before(op string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fail(op)
}

func (f *deferFaults) Open(ctx context.Context, name string, m feeds.Member) (feeds.Feed, error) {
	feed, err := f.Store.Open(ctx, name, m)
	return deferFaultsFeed{f, feed}, err
}

type deferFaultsFeed struct {
	f *deferFaults
	feeds.Feed
}

func (f deferFaultsFeed) Defer(ctx context.Context, msgs []feeds.Deferral) error {
	if err := f.f.before("Defer"); err != nil {
		return err
	}
	return f.Feed.Defer(ctx, msgs)
}

func (f deferFaultsFeed) Blocked(ctx context.Context, shard int) ([]string, error) {
	if err := f.f.before("Blocked"); err != nil {
		return nil, err
	}
	return f.Feed.Blocked(ctx, shard)
}

func (f deferFaultsFeed) Due(ctx context.Context, want feeds.DueRequest) (feeds.Due, error) {
	if err := f.f.before("Due"); err != nil {
		return feeds.Due{}, err
	}
	return f.Feed.Due(ctx, want)
}

func (f deferFaultsFeed) Conclude(ctx context.Context, done []feeds.Conclusion) ([]string, error) {
	if err := f.f.before("Conclude"); err != nil {
		return nil, err
	}
	return f.Feed.Conclude(ctx, done)
}

// TestCannotDefer: while the store cannot defer messages, their keys wait and others continue.
// Nothing is lost, and order is kept.
func TestCannotDefer(t *testing.T) {
	bothModes(t, func(t *testing.T, keepsOrder bool) {
		w := newWorld(t, 1)
		mood := refusing(postrider.Permanent(errOdd), "k1/2", "k3/0")
		s := &sink{w: w, keepsOrder: keepsOrder, fail: mood.fail}
		var up atomic.Bool
		f := &deferFaults{Store: w.store, fail: func(op string) error {
			if op == "Defer" && !up.Load() {
				return errOdd
			}
			return nil
		}}
		w.commitMany(500, 5)
		log := newLogbook()
		cfg := relay.Config{BatchSize: 20, Logger: slogOf(log), DrainTimeout: 2 * time.Second}
		r := start(t, f, s, cfg)
		time.Sleep(time.Minute)
		if _, distinct, _ := w.counts(); distinct != 302 {
			t.Errorf("%d messages were received, want those of 3 keys and 2 of another", distinct)
		}
		if n := log.count("WARN relay: deferring messages fails, trying again"); n < 1 || n > 3 {
			t.Errorf("%d lines about a minute of outage", n)
		}
		checkDeferred(w, map[feeds.Status]int{})
		r.cancel() // not clean: messages that arrived behind the rejected ones are not settled
		<-r.done
		r = start(t, f, s, cfg)
		time.Sleep(time.Minute)
		up.Store(true)
		w.commitMany(500, 5)
		time.Sleep(5 * time.Second)
		if got := r.Stats(); got.Blocked != 2 || got.Buffered != 0 {
			t.Errorf("stats %+v, want 2 blocked keys and nothing else", got)
		}
		mood.mend()
		w.await(time.Minute)
		r.stop()
		w.check()
		checkDeferred(w, map[feeds.Status]int{})
	})
}

// TestRefusedAtRandom: keys fail at random for a while, both permanently and without a class. Two
// relays come and go. In the end everything has been received in order, and nothing is deferred.
func TestRefusedAtRandom(t *testing.T) {
	seeds := uint64(20)
	if testing.Short() {
		seeds = 4
	}
	for seed := range seeds {
		bubble(t, strconv.FormatUint(seed, 10), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 7))
			w := newWorld(t, 1+random.IntN(4))
			mood := refusing(nil)
			s := &sink{w: w, keepsOrder: seed%2 == 0, fail: mood.fail, delay: func() time.Duration { return time.Millisecond }}
			trouble := rand.New(rand.NewPCG(seed, 8))
			share := 0.1 * float64(seed%3)
			f := &deferFaults{Store: w.store, fail: func(string) error {
				if trouble.Float64() < share {
					return errOdd
				}
				return nil
			}}
			cfg := relay.Config{
				BatchSize: 1 + random.IntN(40),
				Retry:     retry.Policy{First: 20 * time.Millisecond, Most: time.Second, Attempts: 3 + random.IntN(5)},
			}
			relays := []*running{start(t, f, s, cfg), start(t, f, s, cfg)}
			for range 200 {
				var tx []string
				for range 1 + random.IntN(8) {
					tx = append(tx, "k"+strconv.Itoa(random.IntN(12)))
				}
				w.commit(tx...)
				mood.mu.Lock()
				switch key := "k" + strconv.Itoa(random.IntN(12)); random.IntN(4) {
				case 0:
					mood.says[key] = postrider.Permanent(errOdd)
				case 1:
					mood.says[key] = errOdd
				default:
					delete(mood.says, key)
				}
				mood.mu.Unlock()
				if random.IntN(20) == 0 {
					i := random.IntN(2)
					relays[i].cancel()
					<-relays[i].done // not clean if a message fails without a class before others that have arrived
					relays[i] = start(t, f, s, cfg)
				}
				if random.IntN(20) == 0 {
					if _, err := w.store.Act(t.Context(), admin.By{}, admin.Retry, admin.Filter{}, 0); err != nil {
						t.Error(err)
					}
				}
				time.Sleep(time.Duration(random.IntN(60)) * time.Millisecond)
			}
			time.Sleep(30 * time.Second)
			mood.mend()
			if _, err := w.store.Act(t.Context(), admin.By{}, admin.Retry, admin.Filter{}, 0); err != nil {
				t.Error(err)
			}
			w.await(10 * time.Minute)
			time.Sleep(time.Minute)
			for _, r := range relays {
				if got := r.Stats(); got.Blocked != 0 || got.Buffered != 0 {
					t.Errorf("stats %+v, want nothing left", got)
				}
				r.stop()
			}
			w.check()
			checkDeferred(w, map[feeds.Status]int{})
		})
	}
}
