package live

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/admin/console/internal/source"
	"github.com/postrider/postrider/relay"
)

// gauges grow by 100 messages a second, of which 90 are delivered.
type gauges struct {
	begun time.Time
	asked atomic.Int64
	down  atomic.Bool
}

func (g *gauges) Gauges(context.Context) (*admin.Standing, error) {
	g.asked.Add(1)
	if g.down.Load() {
		return nil, errors.New("connection refused")
	}
	n := int64(time.Since(g.begun) / time.Second)
	return &admin.Standing{
		At: time.Now(), Enqueued: 100 * n,
		Feeds: []admin.FeedStanding{{
			Name: "default", Pending: admin.Estimate{N: 10 * n, Exact: true}, Oldest: time.Now().Add(-5 * time.Second),
			Members: []admin.Member{{Name: "r1"}},
		}},
	}, nil
}

func (g *gauges) Health(context.Context) (*admin.Health, error) { return &admin.Health{}, nil }

func watching(t *testing.T, f func(g *gauges, w *Watch, ctx context.Context)) {
	synctest.Test(t, func(t *testing.T) {
		g := &gauges{begun: time.Now()}
		w := NewWatch(Config{Gauges: g, Every: 2 * time.Second, Hub: NewHub(3, 2), Meter: new(Meter)})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			w.Run(ctx)
		}()
		f(g, w, ctx)
		stop()
		<-ended // and synctest fails if any goroutine is left
	})
}

// TestSeldom asks the database often only as long as somebody is interested.
func TestSeldom(t *testing.T) {
	watching(t, func(g *gauges, w *Watch, ctx context.Context) {
		time.Sleep(10*time.Minute + time.Second)
		if n := g.asked.Swap(0); n != 41 { // one at once, then four a minute
			t.Errorf("asked %d times in 10 minutes in which nobody looked", n)
		}
		for range 100 {
			if _, err := w.Latest(ctx); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if n := g.asked.Swap(0); n > 2 {
			t.Errorf("asked %d times by 100 who look at the same moment", n)
		}
		time.Sleep(50 * time.Second)
		if n := g.asked.Swap(0); n < 24 || n > 26 {
			t.Errorf("asked %d times in the 50 s after somebody has looked", n)
		}
		time.Sleep(5 * time.Minute)
		if n := g.asked.Swap(0); n > 26 {
			t.Errorf("asked %d times in the 5 minutes after that", n)
		}
		watcher, err := w.Subscribe("ann", 0)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for range watcher.Events() {
			}
		}()
		g.asked.Store(0)
		time.Sleep(5*time.Minute + time.Second)
		if n := g.asked.Swap(0); n < 150 || n > 152 {
			t.Errorf("asked %d times in 5 minutes in which somebody watched", n)
		}
	})
}

// TestRates measures by differences.
func TestRates(t *testing.T) {
	watching(t, func(g *gauges, w *Watch, ctx context.Context) {
		w.Series(15)
		time.Sleep(30*time.Second + time.Millisecond)
		s := w.Series(15)
		last := len(s.T) - 1
		if s.Step != 2 || last != 15 || s.Enqueued[last] != 100 || s.Published[last] != 90 || s.Oldest[last] != 5 || s.Failed[last].Known() {
			t.Errorf("%d samples, the last %v enqueued, %v published, %v old, %v failed", last, s.Enqueued[last], s.Published[last], s.Oldest[last], s.Failed[last])
		}
		if s.Enqueued[0].Known() {
			t.Error("the first sample has a rate")
		}
		g.down.Store(true)
		time.Sleep(4 * time.Second)
		s = w.Series(15)
		if last = len(s.T) - 1; s.Pending[last].Known() || s.Enqueued[last].Known() {
			t.Error("a database that is down has figures")
		}
		if l, err := w.Latest(ctx); err != nil || l.Err == nil || l.Standing == nil {
			t.Errorf("the last look is not known any more: %+v, %v", l, err)
		}
		g.down.Store(false)
		time.Sleep(4 * time.Second)
		s = w.Series(15)
		if last = len(s.T) - 1; s.Enqueued[last] != 100 {
			t.Errorf("after an outage %v are enqueued a second", s.Enqueued[last])
		}
		text, err := json.Marshal(s)
		if err != nil || len(text) < 100 {
			t.Errorf("%s, %v", text, err)
		}
	})
}

// TestLocalRates believes the relays of this process.
func TestLocalRates(t *testing.T) {
	now := time.Now()
	at := func(seconds int, enqueued, pending, published, failed int64) counts {
		return count(&admin.Standing{
			At: now.Add(time.Duration(seconds) * time.Second), Enqueued: enqueued,
			Feeds: []admin.FeedStanding{{Name: "default", Members: []admin.Member{{Name: "r1"}}, Pending: admin.Estimate{N: pending}}},
		}, []source.Relay{{Feed: "default", Name: "r1", Stats: relay.Stats{Published: published, Failed: failed}}})
	}
	before, after := at(0, 0, 0, 50, 0), at(2, 100, 60, 130, 4)
	if r := after.since(&before); r.published != 40 || r.failed != 2 || r.enqueued != 50 {
		t.Errorf("%+v", r)
	}
	again := at(4, 200, 60, 10, 0) // the relay was restarted
	if r := again.since(&after); r.published != 50 || r.failed != 0 {
		t.Errorf("%+v", r)
	}
}

// TestHistory keeps a day.
func TestHistory(t *testing.T) {
	h := newHistory(2 * time.Second)
	begun := time.Unix(1_800_000_000, 0)
	for i := range 2 * 86400 / 2 {
		s := blank(begun.Unix() + int64(i)*2)
		s.Enqueued, s.Pending = 10, Value(i%30)
		h.add(s)
	}
	now := begun.Add(48 * time.Hour)
	if s := h.series(15, now); len(s.T) < 449 || len(s.T) > 451 {
		t.Errorf("%d samples of 15 minutes", len(s.T))
	}
	s := h.series(24*60, now)
	if len(s.T) < 1438 || len(s.T) > 1441 || s.Enqueued[100] != 10 || s.Pending[100] != 29 || s.Step != 60 {
		t.Errorf("%d samples of a day: %v enqueued, %v pending", len(s.T), s.Enqueued[100], s.Pending[100])
	}
}

// TestWatchers drops those that do not read, bounds how many there are, and sends again what was missed.
func TestWatchers(t *testing.T) {
	watching(t, func(g *gauges, w *Watch, ctx context.Context) {
		slow, err := w.Subscribe("ann", 0)
		if err != nil {
			t.Fatal(err)
		}
		other, err := w.Subscribe("ann", 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Subscribe("ann", 0); !errors.Is(err, ErrCrowded) {
			t.Errorf("a third one of one client: %v", err)
		}
		w.Leave(other)
		bob, err := w.Subscribe("bob", 0)
		if err != nil {
			t.Fatal(err)
		}
		var last Event
		go func() {
			for e := range bob.Events() {
				last = e
			}
		}()
		time.Sleep(time.Minute)
		synctest.Wait()
		n := 0
		for range slow.Events() { // closed
			n++
		}
		if n != room {
			t.Errorf("a watcher that does not read got %d", n)
		}
		again, err := w.Subscribe("ann", last.ID-10)
		if err != nil || len(again.First) != 5 || again.First[4].ID != last.ID {
			t.Errorf("missed: %+v, %v", again.First, err)
		}
	})
}
