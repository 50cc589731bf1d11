package schema

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/postrider/postrider"
)

func TestCacheLoadsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache[int, string](10)
		var loads atomic.Int32
		answer := make(chan struct{})
		for range 20 {
			go func() {
				v, err := c.get(t.Context(), 1, func(context.Context) (string, error) {
					loads.Add(1)
					<-answer
					return "one", nil
				})
				if v != "one" || err != nil {
					t.Errorf("got %q, %v", v, err)
				}
			}()
		}
		synctest.Wait()
		close(answer)
		synctest.Wait()
		if n := loads.Load(); n != 1 {
			t.Errorf("loaded %d times", n)
		}
	})
}

func TestCacheKeepsNoFailure(t *testing.T) {
	c := newCache[int, string](10)
	failed := errors.New("down")
	if _, err := c.get(t.Context(), 1, func(context.Context) (string, error) { return "", failed }); !errors.Is(err, failed) {
		t.Fatal(err)
	}
	if v, err := c.get(t.Context(), 1, func(context.Context) (string, error) { return "up", nil }); v != "up" || err != nil {
		t.Errorf("got %q, %v", v, err)
	}
}

// TestCacheLeaderGivesUp checks that waiting callers do not fail if the context of the caller that
// loads ends.
func TestCacheLeaderGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache[int, string](10)
		short, cancel := context.WithCancel(t.Context())
		go func() {
			_, err := c.get(short, 1, func(ctx context.Context) (string, error) {
				<-ctx.Done()
				return "", ctx.Err()
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("the leader got %v", err)
			}
		}()
		synctest.Wait()
		impatient, leave := context.WithCancel(t.Context())
		go func() {
			_, err := c.get(impatient, 1, nil)
			if !errors.Is(err, context.Canceled) || postrider.ClassOf(err) != postrider.ClassUnavailable {
				t.Errorf("who left got %v", err)
			}
		}()
		synctest.Wait()
		leave()
		synctest.Wait()
		got := make(chan string, 1)
		go func() {
			v, err := c.get(t.Context(), 1, func(context.Context) (string, error) { return "one", nil })
			if err != nil {
				t.Errorf("the follower got %v", err)
			}
			got <- v
		}()
		synctest.Wait()
		cancel()
		if v := <-got; v != "one" {
			t.Errorf("got %q", v)
		}
	})
}

func TestCacheSurvivesPanic(t *testing.T) {
	c := newCache[int, string](10)
	func() {
		defer func() { _ = recover() }()
		_, _ = c.get(t.Context(), 1, func(context.Context) (string, error) { panic("schema") })
	}()
	if v, err := c.get(t.Context(), 1, func(context.Context) (string, error) { return "one", nil }); v != "one" || err != nil {
		t.Errorf("got %q, %v", v, err)
	}
}

func TestCacheIsBounded(t *testing.T) {
	c := newCache[int, int](3)
	for i := range 100 {
		if v, err := c.get(t.Context(), i, func(context.Context) (int, error) { return i, nil }); v != i || err != nil {
			t.Fatalf("got %d, %v", v, err)
		}
		if len(c.have) > 3 || len(c.loads) != 0 {
			t.Fatalf("it has %d entries, %d loads", len(c.have), len(c.loads))
		}
	}
}
