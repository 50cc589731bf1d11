package intake_test

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
	"github.com/postrider/postrider/retry"
)

var quiet = slog.New(slog.DiscardHandler)

func message(key string, n int) postrider.Message {
	return postrider.Message{Type: "t", Key: key, Payload: fmt.Append(nil, n)}
}

func accept(in *intake.Intake, m postrider.Message, done func()) bool {
	return in.Accept(intake.Delivery{Message: m, Done: done})
}

func TestKeysInOrderOthersBeside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		handled := map[string][]string{}
		in := intake.Open(ctx, func(_ context.Context, m postrider.Message) error {
			if m.Key == "slow" {
				time.Sleep(time.Second)
			}
			mu.Lock()
			defer mu.Unlock()
			handled[m.Key] = append(handled[m.Key], string(m.Payload))
			return nil
		}, intake.Config{Logger: quiet})
		var done atomic.Int32
		begin := time.Now()
		for n := range 5 {
			for _, key := range []string{"slow", "quick", ""} {
				if !accept(in, message(key, n), func() { done.Add(1) }) {
					t.Fatal("not accepted")
				}
			}
		}
		synctest.Wait()
		if done.Load() != 10 || time.Since(begin) != 0 {
			t.Errorf("%d messages done after %v: a slow key holds up the others", done.Load(), time.Since(begin))
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		cancel()
		in.Wait()
		for _, key := range []string{"slow", "quick"} {
			if !slices.Equal(handled[key], []string{"0", "1", "2", "3", "4"}) {
				t.Errorf("key %s: %v", key, handled[key])
			}
		}
		if done.Load() != 15 {
			t.Errorf("%d done, want 15", done.Load())
		}
	})
}

func TestFailureIsRepeatedAndHoldsItsKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var at []time.Duration
		begin := time.Now()
		var second time.Duration
		in := intake.Open(ctx, func(_ context.Context, m postrider.Message) error {
			if string(m.Payload) == "1" {
				second = time.Since(begin)
				return nil
			}
			at = append(at, time.Since(begin))
			if len(at) < 4 {
				return errors.New("not yet")
			}
			return nil
		}, intake.Config{Retry: retry.Policy{Pauses: []time.Duration{time.Second, 2 * time.Second}}, Logger: quiet})
		accept(in, message("k", 0), func() {})
		accept(in, message("k", 1), func() {})
		time.Sleep(time.Minute)
		cancel()
		in.Wait()
		if want := []time.Duration{0, 1 * time.Second, 3 * time.Second, 5 * time.Second}; !slices.Equal(at, want) {
			t.Errorf("tried at %v, want %v", at, want)
		}
		if second != 5*time.Second {
			t.Errorf("the next message of the key came at %v", second)
		}
	})
}

func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		gate := make(chan struct{})
		var counters intake.Counters
		var log strings.Builder
		in := intake.Open(ctx, func(context.Context, postrider.Message) error {
			<-gate
			return nil
		}, intake.Config{Limit: 3, Waiting: 2, Counters: &counters, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		accepted := 0
		go func() {
			for _, key := range []string{"a", "b", "a", "a", "c", "d"} { // one is handled, two wait behind it
				if accept(in, message(key, 0), func() {}) {
					accepted++
				}
			}
		}()
		synctest.Wait()
		if accepted != 4 || counters.Stats().Waiting != 2 {
			t.Errorf("%d accepted, %+v: want two that are handled and two that wait", accepted, counters.Stats())
		}
		gate <- struct{}{}
		gate <- struct{}{}
		synctest.Wait()
		if accepted < 5 {
			t.Errorf("%d accepted: a free place is not used", accepted)
		}
		close(gate)
		synctest.Wait()
		if accepted != 6 || counters.Stats() != (intake.Stats{}) {
			t.Errorf("%d accepted, %+v: want all, and none that waits", accepted, counters.Stats())
		}
		cancel()
		in.Wait()
		if accept(in, message("late", 0), func() {}) {
			t.Error("a message was accepted after the end")
		}
		if log.Len() > 0 {
			t.Errorf("nothing has failed, and the log says %s", log.String())
		}
	})
}

func TestEndLetsHandlersFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var done, begun atomic.Int32
		in := intake.Open(ctx, func(ctx context.Context, m postrider.Message) error {
			begun.Add(1)
			select {
			case <-time.After(time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}, intake.Config{Logger: quiet})
		accept(in, message("k", 0), func() { done.Add(1) })
		accept(in, message("k", 1), func() { done.Add(1) })
		synctest.Wait()
		cancel()
		in.Wait()
		if done.Load() != 1 || begun.Load() != 1 {
			t.Errorf("%d done, %d begun: want the one under way to finish and no other to begin", done.Load(), begun.Load())
		}
	})
}

func TestEndDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		in := intake.Open(ctx, func(ctx context.Context, m postrider.Message) error {
			<-ctx.Done()
			return ctx.Err()
		}, intake.Config{DrainTimeout: 3 * time.Second, Logger: quiet})
		accept(in, message("k", 0), func() { t.Error("done") })
		synctest.Wait()
		begin := time.Now()
		cancel()
		in.Wait()
		if took := time.Since(begin); took != 3*time.Second {
			t.Errorf("ended after %v, want DrainTimeout", took)
		}
	})
}
