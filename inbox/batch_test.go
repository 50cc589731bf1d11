package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/retry"
)

// TestBatchBesideHandlers checks that a message goes to the handler of its type, and to the batch
// handler only if its type has none, at the first attempt and at retries.
func TestBatchBesideHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t, inbox.Config{Retry: retry.Policy{Pauses: []time.Duration{time.Second}}})
		var calls []string
		failing := func(who string) error {
			if calls = append(calls, who); len(calls)%2 == 1 {
				return errHandler
			}
			return nil
		}
		inbox.On(h.Inbox, "t", func(context.Context, tx, int) error { return failing("On") })
		h.HandleBatch("*", func(_ context.Context, _ tx, msgs []postrider.Message) error { return failing("batch " + msgs[0].Type) })
		stop := h.run()
		h.receive(message("", "1"))
		time.Sleep(2 * time.Second)
		h.receive(postrider.Message{ID: postrider.NewID(), Type: "other"})
		time.Sleep(2 * time.Second)
		if want := []string{"On", "On", "batch other", "batch other"}; !slices.Equal(calls, want) {
			t.Errorf("calls %q, want %q", calls, want)
		}
		h.wantDeadLetters()
		stop()
	})
}

// TestBatches checks that messages that arrive during a transaction go into the next batch, and
// that a message that fails does not prevent the others of its batch from being handled.
func TestBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t, inbox.Config{Batch: 4, Retry: retry.Policy{Pauses: []time.Duration{time.Hour}}})
		var mu sync.Mutex
		var sizes []int
		failures := 0
		h.HandleBatch("*", func(ctx context.Context, _ tx, msgs []postrider.Message) error {
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			sizes = append(sizes, len(msgs))
			for _, m := range msgs {
				if string(m.Payload) == "3" && failures < 2 {
					failures++
					return errHandler
				}
				if err := h.effects.add(ctx, string(m.Payload)); err != nil {
					return err
				}
			}
			return nil
		})
		stop := h.run()
		var all sync.WaitGroup
		for i := range 7 {
			all.Go(func() { h.receive(message(fmt.Sprint(i), fmt.Sprint(i))) })
			synctest.Wait()
		}
		all.Wait()
		// The first message alone; a batch of four that fails, then each of them alone; the other
		// two.
		mu.Lock()
		if want := []int{1, 4, 1, 1, 1, 1, 2}; !slices.Equal(sizes, want) {
			t.Errorf("sizes %v, want %v", sizes, want)
		}
		mu.Unlock()
		time.Sleep(2 * time.Hour)
		effects := h.effects.all()
		slices.Sort(effects)
		if want := []string{"0", "1", "2", "3", "4", "5", "6"}; !slices.Equal(effects, want) {
			t.Errorf("effects %q, want %q", effects, want)
		}
		h.wantStats(inbox.Stats{Handled: 7, Failed: 1})
		stop()
	})
}

// TestBatchOutage checks that every message of the batch gets the error of an outage, and that the
// next batch finds a leader.
func TestBatchOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t, inbox.Config{})
		h.HandleBatch("*", func(ctx context.Context, _ tx, msgs []postrider.Message) error {
			time.Sleep(time.Second)
			for _, m := range msgs {
				if err := h.effects.add(ctx, string(m.Payload)); err != nil {
					return err
				}
			}
			return nil
		})
		h.receive(message("", "first"))
		var all sync.WaitGroup
		errs := make([]error, 5)
		for i := range errs {
			all.Go(func() { errs[i] = h.Receive(t.Context(), message("", fmt.Sprint(i))) })
			synctest.Wait()
			h.flaky.down.Store(true)
		}
		all.Wait()
		for i, err := range errs {
			if (err == nil) != (i == 0) || i > 0 && !errors.Is(err, errDown) {
				t.Errorf("%d: %v", i, err)
			}
		}
		h.flaky.down.Store(false)
		h.receive(message("", "last"))
		h.wantEffects("first", "0", "last")
	})
}

// TestBatchLeaderGone checks that a caller that gives up, such as the sender of a webhook,
// withdraws only its own message: the others are handled, whether that caller leads the batch or
// would lead the next one.
func TestBatchLeaderGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t, inbox.Config{})
		h.HandleBatch("*", func(ctx context.Context, _ tx, msgs []postrider.Message) error {
			time.Sleep(time.Second)
			for _, m := range msgs {
				if err := h.effects.add(ctx, string(m.Payload)); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
		errs := make([]error, 5)
		var all sync.WaitGroup
		for i, timeout := range []time.Duration{5 * time.Second, 1500 * time.Millisecond, 500 * time.Millisecond, 5 * time.Second, 5 * time.Second} {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), timeout)
				defer cancel()
				errs[i] = h.Receive(ctx, message("", fmt.Sprint(i)))
			})
			synctest.Wait()
		}
		all.Wait()
		for i, err := range errs {
			if gone := i == 2; gone != errors.Is(err, context.DeadlineExceeded) || !gone && err != nil {
				t.Errorf("%d: %v", i, err)
			}
		}
		h.wantEffects("0", "1", "3", "4")
	})
}
