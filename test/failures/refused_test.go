package failures_test

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
	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/postgres"
)

// TestRefused writes 100,000 messages of 1,000 keys at a steady rate. For a while 1 % of all
// attempts are rejected at random, and one message of each of 10 keys permanently; order is strict,
// and three relays are restarted at random. Healthy keys keep their order and do not wait for
// others; the 10 keys are blocked, and continue in order after an operator's decision; no message
// is lost.
func TestRefused(t *testing.T) {
	need.Alone(t, "measures how long messages take")
	s := newScene(t, newest(t), postgres.Layout{})
	messages, keys, rate := 30_000, 300, 3000
	if need.IsLong() {
		messages, keys, rate = 100_000, 1000, 4000
	}
	w := &witness{sent: make(map[string][]time.Time), got: make(map[string][]int), refusedKeys: make(map[string]bool)}
	cfg := relay.Config{Retry: retry.Policy{First: 100 * time.Millisecond}, BalanceInterval: 100 * time.Millisecond, PollMax: 20 * time.Millisecond}

	var fleet sync.WaitGroup
	over := make(chan struct{})
	for i := range 3 {
		cfg := cfg
		cfg.Name = "relay " + strconv.Itoa(i)
		fleet.Go(func() { s.restart(w, cfg, over) })
	}
	for n, start := 0, time.Now(); n < messages; {
		batch := min(rate/100, messages-n)
		var msgs []postrider.Message
		for range batch {
			msgs = append(msgs, w.next(n%keys, n))
			n++
		}
		s.enqueue(msgs...)
		w.committed(msgs)
		if n == messages*3/4 {
			w.settle()
		}
		time.Sleep(time.Until(start.Add(time.Duration(n) * time.Second / time.Duration(rate))))
	}
	w.settle()

	perKey := messages / keys
	s.eventually(time.Minute, "all but 10 keys are through, and these have a dead letter", func() bool {
		blocked, err := s.admin.Blocked(t.Context(), "default", 100)
		if err != nil {
			t.Fatal(err)
		}
		dead := 0
		for _, k := range blocked {
			if k.Head.Status == feeds.StatusDead {
				dead++
			}
		}
		return dead == 10 && len(blocked) == 10 && w.keysWith(perKey) == keys-10
	})
	healthy, refused := w.delays(s)
	t.Logf("longest way of a message: %v of keys that were never refused, %v of those that were refused at random", healthy, refused)
	if healthy > time.Second {
		t.Errorf("a message of a healthy key took %v", healthy)
	}

	blocked, err := s.admin.Blocked(t.Context(), "", 100)
	if err != nil {
		t.Fatal(err)
	}
	for i, k := range blocked {
		if k.Since.IsZero() || k.Waiting != perKey-4 || !strings.Contains(k.Head.LastError, "poison") {
			t.Errorf("blocked key %+v", k)
		}
		if i%2 == 0 {
			n, err := s.admin.Act(t.Context(), ann, admin.Skip, admin.Filter{Feed: k.Feed, Key: k.Key, Head: true}, 1)
			if n != 1 || err != nil {
				t.Errorf("skipped %d, %v", n, err)
			}
		} else {
			m := k.Head.Message
			m.Payload = []byte("3")
			if err := s.admin.Edit(t.Context(), ann, k.Feed, m.ID, m); err != nil {
				t.Error(err)
			}
		}
	}
	s.eventually(time.Minute, "the 10 keys have drained", func() bool {
		return w.keysWith(perKey) == keys-5 && w.keysWith(perKey-1) == 5
	})
	close(over)
	fleet.Wait()
	w.check(t, perKey)
	counts, err := s.admin.Count(t.Context(), admin.Filter{}, 0)
	if err != nil || len(counts) != 1 || counts[feeds.StatusDead] != 5 {
		t.Errorf("deferred are %v, %v; want the 5 that were skipped", counts, err)
	}
	entries, err := s.admin.Audit(t.Context(), "", 0, 100)
	entries = slices.DeleteFunc(entries, func(e admin.Entry) bool { return e.Action == "feed add" }) // the relay's own entry
	if err != nil || len(entries) != 10 {
		t.Errorf("%d records, %v; want 10", len(entries), err)
	}
	for _, e := range entries {
		if e.Who != ann.Who || e.Why != ann.Why || e.Count != 1 || e.Before["payload"] != "poison" || e.Before["status"] != "dead" {
			t.Errorf("record %+v", e)
		}
	}
}

// restart runs one relay after another, each for about a second.
func (s *scene) restart(pub postrider.Publisher, cfg relay.Config, over <-chan struct{}) {
	for {
		stop := s.start(pub, cfg)
		select {
		case <-time.After(500*time.Millisecond + rand.N(2*time.Second)):
			stop()
		case <-over:
			stop()
			return
		}
	}
}

// witness records what was enqueued and what arrived, by key. It is also a publisher.
type witness struct {
	mu          sync.Mutex
	sent        map[string][]time.Time // when each message was committed
	got         map[string][]int       // numbers, in the order of their first arrival
	arrived     map[string][]time.Time
	refusedKeys map[string]bool
	quiet       bool
}

var errPoison = postrider.Permanent(errors.New("the destination does not like poison"))

// next returns the next message of a key. The first ten keys have a message that always fails.
func (w *witness) next(key, _ int) postrider.Message {
	name := fmt.Sprintf("key-%04d", key)
	w.mu.Lock()
	n := len(w.sent[name])
	w.sent[name] = append(w.sent[name], time.Time{})
	w.mu.Unlock()
	m := postrider.Message{ID: postrider.NewID(), Type: "numbered", Key: name, Payload: strconv.AppendInt(nil, int64(n), 10)}
	if key < 10 && n == 3 {
		m.Payload = []byte("poison")
	}
	return m
}

func (w *witness) committed(msgs []postrider.Message) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range msgs {
		times := w.sent[m.Key]
		for i := len(times) - 1; i >= 0 && times[i].IsZero(); i-- {
			times[i] = now
		}
	}
}

func (w *witness) settle() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.quiet = true
}

func (w *witness) Publish(_ context.Context, msgs []postrider.Message) []error {
	time.Sleep(time.Millisecond)
	w.mu.Lock()
	defer w.mu.Unlock()
	errs := make([]error, len(msgs))
	for i := range msgs {
		m := &msgs[i]
		n, err := strconv.Atoi(string(m.Payload))
		switch {
		case err != nil:
			errs[i] = errPoison
		case !w.quiet && m.Key >= "key-0100" && rand.IntN(100) == 0:
			w.refusedKeys[m.Key] = true
			errs[i] = postrider.Permanent(errors.New("no, not now"))
		case !slices.Contains(w.got[m.Key], n):
			w.got[m.Key] = append(w.got[m.Key], n)
			if w.arrived == nil {
				w.arrived = make(map[string][]time.Time)
			}
			w.arrived[m.Key] = append(w.arrived[m.Key], time.Now())
		}
	}
	return errs
}

func (w *witness) Close() error { return nil }

// keysWith returns how many keys have received the given number of messages.
func (w *witness) keysWith(n int) (keys int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, got := range w.got {
		if len(got) == n {
			keys++
		}
	}
	return keys
}

// delays returns the longest delivery time for keys that were never rejected, and for those that
// sometimes were.
func (w *witness) delays(*scene) (healthy, refused time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, got := range w.got {
		if key < "key-0010" {
			continue
		}
		for i, n := range got {
			d := w.arrived[key][i].Sub(w.sent[key][n])
			if w.refusedKeys[key] {
				refused = max(refused, d)
			} else {
				healthy = max(healthy, d)
			}
		}
	}
	return healthy, refused
}

// check checks the order of all first arrivals, and that only skipped messages are missing.
func (w *witness) check(t *testing.T, perKey int) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, got := range w.got {
		if !slices.IsSorted(got) {
			t.Errorf("%s arrived in the order %v", key, got)
		}
		if len(got) != perKey && (key >= "key-0010" || slices.Contains(got, 3)) {
			t.Errorf("%s: %d messages arrived, want %d", key, len(got), perKey)
		}
	}
}
