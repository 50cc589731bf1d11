package relay_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/store/feeds"
)

// picky is a store that refuses to defer a message of one key. If bare is set, it accepts the
// message without its content.
type picky struct {
	feeds.Store
	key     string
	bare    bool
	mended  atomic.Bool
	refused atomic.Int64
}

func (p *picky) Open(ctx context.Context, feed string, m feeds.Member) (feeds.Feed, error) {
	inner, err := p.Store.Open(ctx, feed, m)
	return pickyFeed{inner, p}, err
}

type pickyFeed struct {
	feeds.Feed
	p *picky
}

var errPicky = errors.New("the store does not like it")

func (f pickyFeed) Defer(ctx context.Context, msgs []feeds.Deferral) error {
	for _, d := range msgs {
		if m := &d.Batch.Messages[d.Index]; m.Key == f.p.key && string(m.Payload) == "0" && !(d.Bare && f.p.bare) && !f.p.mended.Load() {
			f.p.refused.Add(1)
			return errPicky
		}
	}
	return f.Feed.Defer(ctx, msgs)
}

// find returns the message of the log with a key and a number.
func find(w *world, key, number string) *admin.Logged {
	w.t.Helper()
	page, err := w.store.Messages(w.t.Context(), "default", admin.Filter{Key: key}, 0, 100)
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range page.Items { // lists have no payloads
		one, err := w.store.Messages(w.t.Context(), "default", admin.Filter{ID: page.Items[i].ID}, 0, 1)
		if err != nil {
			w.t.Fatal(err)
		}
		if string(one.Items[0].Payload) == number {
			return &one.Items[0]
		}
	}
	w.t.Fatalf("the log has no message %s of key %s", number, key)
	return nil
}

// TestExclude: a message that an operator handles before the relay reaches it is not sent, and the
// messages behind it continue.
func TestExclude(t *testing.T) {
	for _, act := range []admin.Act{admin.Park, admin.Discard} {
		t.Run(string(act), func(t *testing.T) {
			bothModes(t, func(t *testing.T, keepsOrder bool) {
				w := newWorld(t, 2)
				s := &sink{w: w, keepsOrder: keepsOrder}
				if err := w.store.AddFeed(t.Context(), admin.By{}, "default", true); err != nil {
					t.Fatal(err)
				}
				w.commitMany(40, 4)
				for _, number := range []string{"3", "4"} {
					if err := w.store.Exclude(t.Context(), admin.By{}, act, "default", find(w, "k1", number).ID); err != nil {
						t.Fatal(err)
					}
				}
				r := start(t, w.store, s, relay.Config{})
				time.Sleep(5 * time.Second)
				if _, distinct, repeated := w.counts(); distinct != 38 || repeated > 0 {
					t.Errorf("%d messages were received, %d twice, want all but 2", distinct, repeated)
				}
				r.stop()
				for _, d := range w.received["k1"] {
					if d.seq == 3 || d.seq == 4 {
						t.Errorf("message %d was received", d.seq)
					}
				}
				want := map[feeds.Status]int{}
				if act == admin.Park {
					want[feeds.StatusParked] = 2
				}
				checkDeferred(w, want)
			})
		})
	}
}

// TestExcludeStuck: a message that can neither be sent nor deferred blocks its shard only until an
// operator discards it, without a restart of the relay.
func TestExcludeStuck(t *testing.T) {
	bothModes(t, func(t *testing.T, keepsOrder bool) {
		w := newWorld(t, 1)
		mood := refusing(postrider.Permanent(errOdd), "k1/0")
		s := &sink{w: w, keepsOrder: keepsOrder, fail: mood.fail}
		w.commitMany(400, 20)
		p := &picky{Store: w.store, key: "k1"}
		r := start(t, p, s, relay.Config{BatchSize: 10, ReadAhead: 40})
		time.Sleep(time.Minute)
		if _, distinct, _ := w.counts(); distinct >= 100 || p.refused.Load() < 5 {
			t.Fatalf("%d messages were received, %d deferrals were refused: nothing is stuck", distinct, p.refused.Load())
		}
		if err := w.store.Exclude(t.Context(), admin.By{}, admin.Discard, "default", find(w, "k1", "0").ID); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if _, distinct, repeated := w.counts(); distinct != 399 || repeated > 0 {
			t.Errorf("%d messages were received, %d twice, want all but one", distinct, repeated)
		}
		if got := r.Stats(); got.Buffered != 0 || got.Blocked != 0 {
			t.Errorf("stats %+v, want nothing left", got)
		}
		r.stop()
		checkDeferred(w, map[feeds.Status]int{})
	})
}

// TestBare: a message that the store refuses to defer becomes a dead letter without content, and
// all others continue.
func TestBare(t *testing.T) {
	bothModes(t, func(t *testing.T, keepsOrder bool) {
		w := newWorld(t, 1)
		mood := refusing(postrider.Permanent(errOdd), "k1/0", "k2/0")
		s := &sink{w: w, keepsOrder: keepsOrder, fail: mood.fail}
		w.commitMany(400, 20)
		p := &picky{Store: w.store, key: "k1", bare: true}
		log := newLogbook()
		r := start(t, p, s, relay.Config{BatchSize: 10, ReadAhead: 40, Retry: retry.Policy{Attempts: 1}, Logger: slogOf(log)})
		time.Sleep(2 * time.Minute)
		if _, distinct, repeated := w.counts(); distinct != 400-1-20 || repeated > 0 {
			t.Errorf("%d messages were received, %d twice, want all but one of k1 and those of k2", distinct, repeated)
		}
		if got := r.Stats(); got.Buffered != 0 || got.Blocked != 1 || got.Dead != 2 {
			t.Errorf("stats %+v, want nothing in the window, one key blocked and two dead letters", got)
		}
		r.stop()
		list, err := w.store.List(t.Context(), admin.Filter{Key: "", Statuses: []feeds.Status{feeds.StatusDead}}, nil, 10)
		if err != nil || len(list) != 2 {
			t.Fatalf("dead are %+v, %v, want two", list, err)
		}
		d := list[0]
		if !d.Bare || d.Blocking || d.Key != "" || len(d.Payload) > 0 || d.Type != "happened" ||
			!strings.Contains(d.LastError, "the store could not defer it: "+errPicky.Error()) {
			t.Errorf("got %+v, want a dead letter without content", d)
		}
		if d.ID != find(w, "k1", "0").ID {
			t.Error("the log has lost the message, or it is another one")
		}
		// It can be removed, but neither sent nor edited.
		for _, act := range []admin.Act{admin.Retry, admin.Park, admin.Discard} {
			want := 1
			if act == admin.Retry {
				want = 0
			}
			if n, err := w.store.Act(t.Context(), admin.By{}, act, admin.Filter{ID: d.ID}, 0); n != want || err != nil {
				t.Errorf("%s: %d, %v, want %d", act, n, err, want)
			}
		}
	})
}

// TestBareNotInOutage: while all calls of the store fail, no message loses its content.
func TestBareNotInOutage(t *testing.T) {
	bothModes(t, func(t *testing.T, keepsOrder bool) {
		w := newWorld(t, 1)
		mood := refusing(postrider.Permanent(errOdd), "k1/0")
		s := &sink{w: w, keepsOrder: keepsOrder, fail: mood.fail}
		w.commitMany(40, 4)
		p := &picky{Store: w.store, key: "k1", bare: true}
		f := &faults{Store: p}
		r := start(t, f, s, relay.Config{Retry: retry.Policy{Attempts: 1}})
		time.Sleep(100 * time.Millisecond)
		f.set(func(string) error { return errOdd })
		time.Sleep(10 * time.Minute)
		if p.refused.Load() < 10 {
			t.Errorf("%d deferrals were refused: nothing was tried", p.refused.Load())
		}
		p.mended.Store(true)
		f.set(nil)
		time.Sleep(time.Minute)
		r.stop()
		list, err := w.store.List(t.Context(), admin.Filter{Statuses: []feeds.Status{feeds.StatusDead}}, nil, 10)
		if err != nil || len(list) != 1 || list[0].Bare {
			t.Errorf("dead are %+v, %v, want one with its content", list, err)
		}
	})
}
