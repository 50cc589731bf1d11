package stock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/internal/stock"
)

// TestRounds: recalls that come during a read share the next one, which begins after all of them and
// reads as far back as any of them asks.
func TestRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rounds stock.Rounds
		var reads atomic.Int64
		start := time.Now()
		var run sync.WaitGroup
		for n := range 8 {
			run.Go(func() {
				time.Sleep(time.Duration(n) * time.Second)
				called, since := time.Now(), start.Add(-time.Duration(n)*time.Hour)
				got := 0
				err := rounds.Recall(t.Context(), "name", since, func(string) { got++ }, func(_ context.Context, from time.Time, found func(string)) error {
					reads.Add(1)
					if from.After(since) || time.Now().Before(called) {
						t.Errorf("%d: reads since %v at %v", n, from, time.Now())
					}
					for range 3 {
						time.Sleep(10 * time.Second)
						found("id")
					}
					return nil
				})
				if err != nil || got != 3 {
					t.Errorf("%d: %v, %d messages, want 3", n, err, got)
				}
			})
		}
		run.Wait()
		if n := reads.Load(); n != 2 {
			t.Errorf("%d reads, want 2", n)
		}
	})
}

// TestRoundsEnd: one that gives up leaves the others alone, and one that asks for less than the read
// that was refused asks by itself.
func TestRoundsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rounds stock.Rounds
		start := time.Now()
		read := func(ctx context.Context, from time.Time, found func(string)) error {
			select {
			case <-time.After(10 * time.Second):
			case <-ctx.Done():
				return ctx.Err()
			}
			found("id")
			if from.Before(start.Add(-time.Hour)) {
				return broker.CannotRecall("dropped")
			}
			return nil
		}
		var run sync.WaitGroup
		for n, want := range []error{nil, broker.ErrCannotRecall, nil, context.DeadlineExceeded} {
			run.Go(func() {
				time.Sleep(time.Duration(n) * time.Second)
				ctx, cancel := context.WithCancel(t.Context())
				since := start
				switch n {
				case 1:
					since = start.Add(-2 * time.Hour)
				case 3:
					ctx, cancel = context.WithTimeout(ctx, 12*time.Second)
				}
				defer cancel()
				over := false
				err := rounds.Recall(ctx, "name", since, func(string) {
					if over {
						t.Errorf("%d: a message after the end", n)
					}
				}, read)
				over = true
				if !errors.Is(err, want) || want == nil && err != nil {
					t.Error(fmt.Sprint(n, ": "), err)
				}
			})
		}
		run.Wait()
	})
}
