package intake_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/intake"
)

var quiet = slog.New(slog.DiscardHandler)

func message(key string, n int) postrider.Message {
	return postrider.Message{Type: "t", Key: key, Payload: fmt.Append(nil, n)}
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
				if !in.Accept(message(key, n), func() { done.Add(1) }) {
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
		}, intake.Config{RetryMin: time.Second, RetryMax: 2 * time.Second, Logger: quiet})
		in.Accept(message("k", 0), func() {})
		in.Accept(message("k", 1), func() {})
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

func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		gate := make(chan struct{})
		in := intake.Open(ctx, func(context.Context, postrider.Message) error {
			<-gate
			return nil
		}, intake.Config{Limit: 3, Logger: quiet})
		accepted := 0
		go func() {
			for n := range 5 {
				if in.Accept(message("same", n), func() {}) { // those that wait behind their key count too
					accepted++
				}
			}
		}()
		synctest.Wait()
		if accepted != 3 {
			t.Errorf("%d accepted, want the limit of 3", accepted)
		}
		close(gate)
		synctest.Wait()
		if accepted != 5 {
			t.Errorf("%d accepted, want all", accepted)
		}
		cancel()
		in.Wait()
		if in.Accept(message("late", 0), func() {}) {
			in.Wait()
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
		in.Accept(message("k", 0), func() { done.Add(1) })
		in.Accept(message("k", 1), func() { done.Add(1) })
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
		in.Accept(message("k", 0), func() { t.Error("done") })
		synctest.Wait()
		begin := time.Now()
		cancel()
		in.Wait()
		if took := time.Since(begin); took != 3*time.Second {
			t.Errorf("ended after %v, want DrainTimeout", took)
		}
	})
}
