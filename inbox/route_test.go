package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/intake"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/retry"
)

func typed(kind, key, text string) postrider.Message {
	m := message(key, text)
	m.Type = kind
	return m
}

// TestMiddleware checks that middleware wraps every handler, also at a retry, and that the inbox's
// middleware is outside of the type's.
func TestMiddleware(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var lines []string
		say := func(name string) postrider.Middleware {
			return func(next postrider.Handler) postrider.Handler {
				return func(ctx context.Context, m postrider.Message) error {
					mu.Lock()
					lines = append(lines, name+" "+m.Type)
					mu.Unlock()
					return next(ctx, m)
				}
			}
		}
		h := newFixture(t, inbox.Config{Middleware: []postrider.Middleware{say("outer")}})
		var failed atomic.Bool
		h.Handle("t", func(ctx context.Context, x tx, m postrider.Message) error {
			if !failed.Swap(true) {
				return errHandler
			}
			return h.record(ctx, x, m)
		}, inbox.Use(say("inner")))
		h.Handle("*", h.record)
		stop := h.run()
		h.receive(typed("t", "k", "a"))
		time.Sleep(time.Minute)
		h.receive(typed("other", "k", "b"))
		stop()
		want := []string{"outer t", "inner t", "outer t", "inner t", "outer other"}
		if !slices.Equal(lines, want) {
			t.Errorf("got %q, want %q", lines, want)
		}
		h.wantEffects("a", "b")
	})
}

// TestPolicyByType checks that each type has its own retry policy and timeout.
func TestPolicyByType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t, inbox.Config{Retry: retry.Policy{Pauses: []time.Duration{time.Hour}}})
		var mu sync.Mutex
		calls := make(map[string]int)
		fail := func(ctx context.Context, _ tx, m postrider.Message) error {
			mu.Lock()
			calls[m.Type]++
			mu.Unlock()
			<-ctx.Done()
			return errHandler
		}
		h.Handle("patient", fail, inbox.Timeout(2*time.Minute))
		h.Handle("hasty", fail, inbox.Timeout(time.Second), inbox.Retry(retry.Policy{First: time.Second, Most: time.Second, Attempts: 7}))
		stop := h.run()
		begin := time.Now()
		h.receive(typed("patient", "a", "1"))
		if took := time.Since(begin); took != 2*time.Minute {
			t.Errorf("the first attempt took %s", took)
		}
		h.receive(typed("hasty", "b", "2"))
		time.Sleep(30 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		if calls["hasty"] != 7 || calls["patient"] != 1 {
			t.Errorf("got %v", calls)
		}
		h.wantDeadLetters("1 retry", "2 dead")
		stop()
	})
}

// TestConcurrencyByType checks the concurrency limit of a type. More messages wait for it than the
// consumer handles at a time, and must not block those of other types.
func TestConcurrencyByType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t, inbox.Config{})
		var now, most atomic.Int64
		h.Handle("slow", func(ctx context.Context, x tx, m postrider.Message) error {
			if n := now.Add(1); n > most.Load() { // at most two goroutines store, and the same number
				most.Store(n)
			}
			defer now.Add(-1)
			time.Sleep(time.Second)
			if m.Key == "k3" && h.Stats().Failed == 0 {
				return errHandler // retried concurrently with the others
			}
			return h.record(ctx, x, m)
		}, inbox.Concurrency(2))
		h.Handle("quick", h.record)
		stop := h.run()
		ctx, cancel := context.WithCancel(t.Context())
		in := intake.Open(ctx, h.Receive, intake.Config{Limit: 4})
		done := 0
		var mu sync.Mutex
		accept := func(m postrider.Message) {
			if !in.Accept(intake.Delivery{Message: m, Done: func() {
				mu.Lock()
				defer mu.Unlock()
				done++
			}}) {
				t.Error("not accepted")
			}
		}
		const slow, quick = 40, 100
		for i := range slow {
			accept(typed("slow", fmt.Sprint("k", i), fmt.Sprint("slow", i)))
		}
		begin := time.Now()
		for i := range quick {
			accept(typed("quick", fmt.Sprint("q", i), "quick"))
		}
		synctest.Wait()
		if took := time.Since(begin); took > 0 {
			t.Errorf("the quick ones took %s", took)
		}
		if n := len(slices.DeleteFunc(h.effects.all(), func(s string) bool { return s != "quick" })); n != quick {
			t.Errorf("%d quick ones were handled", n)
		}
		time.Sleep(slow/2*time.Second + 5*time.Second)
		cancel()
		in.Wait()
		stop()
		if done != slow+quick || most.Load() != 2 {
			t.Errorf("%d done, %d at a time", done, most.Load())
		}
		if n := len(h.effects.all()); n != slow+quick {
			t.Errorf("%d effects", n)
		}
	})
}

// TestTypedBatch passes decoded values to a batch handler. One that cannot be decoded becomes a
// dead letter; the others are handled.
func TestTypedBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t, inbox.Config{})
		var largest atomic.Int64
		inbox.OnBatch(h.Inbox, "order", func(ctx context.Context, _ tx, orders []order) error {
			time.Sleep(time.Second)
			msgs := inbox.Messages(ctx)
			if len(msgs) != len(orders) {
				return fmt.Errorf("%d messages, %d values", len(msgs), len(orders))
			}
			largest.Store(max(largest.Load(), int64(len(orders))))
			for i, o := range orders {
				if o.Name == "f" {
					return postrider.Permanent(errHandler)
				}
				if err := h.effects.add(ctx, msgs[i].Key[9:10]+o.Name); err != nil {
					return err
				}
			}
			return nil
		})
		h.Handle("*", h.record)
		stop := h.run()
		var all sync.WaitGroup
		send := func(payloads ...string) {
			for _, payload := range payloads {
				all.Go(func() { h.receive(typed("order", payload, payload)) })
			}
			all.Wait()
		}
		send(`{"name":"a"}`, `{"name":"b"}`, `{"name":"c"}`)
		send(`{"name":"d"}`, `[1]`, `{"name":"e"}`)
		send(`{"name":"f"}`)
		h.receive(typed("other", "x", "other"))
		stop()
		effects := h.effects.all()
		slices.Sort(effects)
		if want := []string{"aa", "bb", "cc", "dd", "ee", "other"}; !slices.Equal(effects, want) {
			t.Errorf("effects %q, want %q", effects, want)
		}
		h.wantDeadLetters("[1] dead", `{"name":"f"} dead`)
		if largest.Load() < 2 {
			t.Errorf("the largest batch had %d", largest.Load())
		}
	})
}

// TestLogger: the log of the configuration is used.
func TestLogger(t *testing.T) {
	var log strings.Builder
	h := newFixture(t, inbox.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	h.Handle("*", func(context.Context, tx, postrider.Message) error { panic("broken") })
	h.receive(typed("order", "k", "1"))
	if !strings.Contains(log.String(), "handler panicked") {
		t.Errorf("the log says %q", log.String())
	}
}

// reversed is a codec that reverses the payload.
type reversed struct{ err error }

func (r reversed) Decode(_ context.Context, m *postrider.Message, into any) error {
	b := slices.Clone(m.Payload)
	slices.Reverse(b)
	*into.(*order) = order{Name: string(b)}
	return r.err
}

func TestCodecs(t *testing.T) {
	h := newFixture(t, inbox.Config{Codecs: map[string]inbox.Codec{
		"application/reversed": reversed{}, "application/broken": reversed{errors.New("no such field")},
		"application/away": reversed{postrider.Unavailable(errors.New("registry: connection refused"))},
	}})
	inbox.On(h.Inbox, "order", func(ctx context.Context, _ tx, o order) error { return h.effects.add(ctx, o.Name) })
	for i, c := range []struct{ contentType, payload string }{
		{"application/reversed", "abc"}, {"Application/Reversed; v=2", "def"}, {"application/json", `{"name":"ghi"}`}, {"", `{"name":"jkl"}`},
		{"application/broken", "x"}, {"application/away", "y"}, {"application/x-protobuf", "\x00"},
	} {
		m := typed("order", fmt.Sprint("k", i), c.payload)
		m.ContentType = c.contentType
		h.receive(m)
	}
	h.wantEffects("cba", "fed", "ghi", "jkl")
	h.wantDeadLetters("x dead", "y retry", "\x00 dead")
	if l := h.deadLetters(); !strings.Contains(l[2].LastError, "application/x-protobuf") {
		t.Errorf("it does not name the content type: %s", l[2].LastError)
	}
}

func TestMisusedOptions(t *testing.T) {
	for name, c := range map[string]struct {
		register func(h *fixture)
		want     string
	}{
		"timeout":     {func(h *fixture) { h.Handle("t", h.record, inbox.Timeout(-1)) }, "Timeout"},
		"concurrency": {func(h *fixture) { h.Handle("t", h.record, inbox.Concurrency(-1)) }, "Concurrency"},
		"policy":      {func(h *fixture) { h.Handle("t", h.record, inbox.Retry(retry.Policy{First: -1})) }, "First"},
		"concurrency of batches": {func(h *fixture) {
			h.HandleBatch("t", func(context.Context, tx, []postrider.Message) error { return nil }, inbox.Concurrency(2))
		}, "one after the other"},
		"middleware of batches": {func(h *fixture) {
			h.HandleBatch("t", func(context.Context, tx, []postrider.Message) error { return nil }, inbox.Use(nil))
		}, "single messages"},
	} {
		h := newFixture(t, inbox.Config{})
		c.register(h)
		if err := h.Run(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
