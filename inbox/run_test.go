package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider"
	broker "github.com/postrider/postrider/broker/memory"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/memory"
)

func publish(t *testing.T, b *broker.Broker, msgs ...postrider.Message) {
	t.Helper()
	if errs := b.Publish(t.Context(), msgs); errs != nil {
		t.Fatal(errs)
	}
}

// TestRun checks that an inbox receives from consumers, finishes running handlers when it is
// stopped, and can be run again.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t, inbox.Config{})
		h.Handle("t", func(ctx context.Context, x tx, m postrider.Message) error {
			time.Sleep(5 * time.Second)
			return h.record(ctx, x, m)
		})
		b := broker.New()
		a := message("k", "a")
		publish(t, b, a, a, message("k", "b"))
		stop := h.run(b.Consumer("orders", "billing", 0))
		time.Sleep(time.Second)
		begin := time.Now()
		stop() // the handler of a is running
		if d := time.Since(begin); d != 4*time.Second {
			t.Errorf("it stopped after %s", d)
		}
		h.wantEffects("a")

		publish(t, b, message("l", "c"))
		stop = h.run(b.Consumer("orders", "billing", 0), b.Consumer("other", "billing", 0))
		time.Sleep(time.Minute)
		stop()
		effects := h.effects.all()
		slices.Sort(effects)
		if !slices.Equal(effects, []string{"a", "b", "c"}) {
			t.Errorf("effects %q", effects)
		}
		h.wantStats(inbox.Stats{Handled: 3, Repeated: 1})
	})
}

// TestDrain checks that a running retry may continue for Drain when the inbox is stopped, and no
// longer.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t, inbox.Config{Retry: retry.Policy{Pauses: []time.Duration{time.Microsecond, time.Microsecond}}, Drain: 3 * time.Second, Timeout: time.Hour})
		attempts := 0
		h.Handle("t", func(ctx context.Context, x tx, m postrider.Message) error {
			if attempts++; attempts == 1 {
				return errHandler
			}
			select {
			case <-time.After(30 * time.Minute):
			case <-ctx.Done():
				return ctx.Err()
			}
			return h.record(ctx, x, m)
		})
		h.receive(message("k", "a"))
		stop := h.run()
		time.Sleep(time.Second)
		begin := time.Now()
		stop()
		if d := time.Since(begin); d != 3*time.Second {
			t.Errorf("it stopped after %s", d)
		}
		h.wantDeadLetters("a retry")
		if d := h.deadLetters()[0]; d.Attempts != 1 {
			t.Errorf("an attempt that was cut short counts: %+v", d)
		}
	})
}

// TestOutages checks that everything is handled after an outage of the database.
func TestOutages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t, inbox.Config{})
		failed := false
		h.Handle("t", func(ctx context.Context, x tx, m postrider.Message) error {
			if string(m.Payload) == "b" && !failed {
				failed = true
				h.flaky.down.Store(true) // Defer fails too
				return errHandler
			}
			return h.record(ctx, x, m)
		})
		h.flaky.down.Store(true)
		b := broker.New()
		publish(t, b, message("k", "a"), message("k", "b"), message("k", "c"))
		stop := h.run(b.Consumer("orders", "billing", 0))
		time.Sleep(time.Minute)
		if n := h.flaky.calls.Load(); n < 20 || n > 40 {
			t.Errorf("%d calls in a minute of an outage", n)
		}
		h.flaky.down.Store(false)
		time.Sleep(10 * time.Second)
		h.wantEffects("a")
		time.Sleep(time.Minute)
		h.flaky.down.Store(false)
		time.Sleep(time.Minute)
		h.wantEffects("a", "b", "c")
		stop()
	})
}

// TestMisused checks that an inbox with no handlers, or with contradictory ones, handles nothing
// and returns an error.
func TestMisused(t *testing.T) {
	batch := func(context.Context, tx, []postrider.Message) error { return nil }
	typed := func(context.Context, tx, int) error { return nil }
	for name, c := range map[string]struct {
		register func(*fixture)
		want     string
	}{
		"none":          {func(*fixture) {}, "no handlers"},
		"twice":         {func(h *fixture) { h.Handle("t", h.record); inbox.On(h.Inbox, "t", typed) }, `"t" has two`},
		"two batches":   {func(h *fixture) { h.HandleBatch("*", batch); h.HandleBatch("*", batch) }, `"*" has two`},
		"batch and all": {func(h *fixture) { h.Handle("*", h.record); h.HandleBatch("*", batch) }, `"*" has two`},
		"nil":           {func(h *fixture) { h.Handle("t", nil) }, "nil"},
		"nil batch":     {func(h *fixture) { h.HandleBatch("*", nil) }, "nil"},
		"no type":       {func(h *fixture) { h.Handle("", h.record) }, "empty"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newFixture(t, inbox.Config{})
			c.register(h)
			for _, err := range []error{h.Run(t.Context()), h.Receive(t.Context(), message("", "a"))} {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want it to say %q", err, c.want)
				}
			}
			h.wantEffects()
			h.wantDeadLetters()
		})
	}
}

// TestCannotRun covers errors that end Run at once.
func TestCannotRun(t *testing.T) {
	h := newFixture(t, inbox.Config{Redelivery: 8 * 24 * time.Hour})
	h.Handle("t", h.record)
	var window *inbox.WindowError
	if err := h.Run(t.Context()); !errors.As(err, &window) || window.Window != 7*24*time.Hour || window.Redelivery != 8*24*time.Hour {
		t.Errorf("got %v, want a WindowError", err)
	}
	if err := h.Receive(t.Context(), message("", "a")); !errors.As(err, &window) {
		t.Errorf("got %v, want a WindowError", err)
	}
	h.wantEffects()

	h = newFixture(t, inbox.Config{})
	h.Handle("t", h.record)
	h.flaky.Store = unmigrated{h.flaky.Store}
	if err := h.Run(t.Context()); !errors.Is(err, feeds.ErrSchema) {
		t.Errorf("got %v, want ErrSchema", err)
	}

	h = newFixture(t, inbox.Config{})
	h.Handle("t", h.record)
	err := h.Run(t.Context(), refused{}, broker.New().Consumer("orders", "billing", 0))
	if !errors.Is(err, errRefused) {
		t.Errorf("got %v, want the error of the subscription", err)
	}
}

type unmigrated struct{ inbox.Store[tx] }

func (unmigrated) Open(context.Context, string) (time.Duration, error) { return 0, feeds.ErrSchema }

type refused struct{}

var errRefused = errors.New("there is no such stream")

func (refused) Consume(context.Context, postrider.Handler) error { return errRefused }
func (refused) Close() error                                     { return nil }

// TestPublisher runs an inbox behind a relay, without a broker.
func TestPublisher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t, inbox.Config{Retriers: 1}) // an effect is recorded after the commit, when another retrier may have the next message
		failures := 0
		h.Handle("*", func(ctx context.Context, x tx, m postrider.Message) error {
			if m.Key == "k1" && failures < 2 {
				failures++
				return errHandler
			}
			return h.record(ctx, x, m)
		})
		carrier, err := relay.New(h.store, h.Publisher(4), relay.Config{Feed: "billing", Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- carrier.Run(ctx) }()
		stop := h.run()
		write := func(from, to int) {
			err := h.store.Do(ctx, func(ctx context.Context, x tx) error {
				for i := from; i < to; i++ {
					if err := h.store.Enqueue(ctx, x, message(fmt.Sprint("k", i%3), fmt.Sprintf("%d %d", i%3, i))); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		write(0, 30)
		time.Sleep(time.Minute)
		h.flaky.down.Store(true)
		write(30, 60)
		time.Sleep(time.Minute)
		h.flaky.down.Store(false)
		time.Sleep(time.Minute)
		var want []string
		for i := range 60 {
			want = append(want, fmt.Sprintf("%d %d", i%3, i))
		}
		got := h.effects.all()
		byKey := func(a, b string) int { return int(a[0]) - int(b[0]) } // stable: in order within a key
		slices.SortStableFunc(got, byKey)
		slices.SortStableFunc(want, byKey)
		if !slices.Equal(got, want) {
			t.Errorf("effects %q, want %q", got, want)
		}
		if counts, err := h.store.ListFeeds(ctx); err != nil || counts[0].Dead != 0 || counts[0].Pending != 0 {
			t.Errorf("%+v, %v: an outage of the consumer caused dead letters", counts, err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		stop()
	})
}

// TestStress delivers the same messages concurrently to two inboxes of one name, with handlers that
// fail: each takes effect once. It also serves the race detector.
func TestStress(t *testing.T) {
	const keys, each = 8, 40
	store := memory.Open(memory.Config{})
	var done effects
	ctx, cancel := context.WithCancel(t.Context())
	b := broker.New()
	var run sync.WaitGroup
	for n := range 2 {
		in, err := inbox.New(store.Inbox(), "billing", inbox.Config{
			Retry: retry.Policy{Pauses: slices.Repeat([]time.Duration{time.Millisecond}, 50)}, Poll: 5 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		in.Handle("t", func(ctx context.Context, _ tx, m postrider.Message) error {
			switch rand.IntN(10) {
			case 0:
				return errHandler
			case 1:
				panic("a bug")
			}
			return done.add(ctx, string(m.Payload))
		})
		// Each inbox has its own group, so that both receive every message.
		consumer := b.Consumer("orders", fmt.Sprint("group", n), 0)
		run.Go(func() {
			if err := in.Run(ctx, consumer); err != nil {
				t.Error(err)
			}
		})
	}
	for n := range each {
		for k := range keys {
			m := message(fmt.Sprint(k), fmt.Sprintf("%d %02d", k, n))
			publish(t, b, m, m)
		}
	}
	for deadline := time.Now().Add(20 * time.Second); len(done.all()) < keys*each && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	cancel()
	run.Wait()
	got := done.all()
	slices.Sort(got)
	if n := len(slices.Compact(slices.Clone(got))); n != keys*each || len(got) != n {
		t.Errorf("%d effects of %d messages, want %d", len(got), n, keys*each)
	}
}
