package broker_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
)

func keyed(keys ...string) []postrider.Message {
	msgs := make([]postrider.Message, len(keys))
	for i, key := range keys {
		msgs[i] = postrider.Message{Type: "t", Key: key, Payload: []byte{byte(i)}}
	}
	return msgs
}

func TestEachKeepsOrder(t *testing.T) {
	var mu sync.Mutex
	sent := map[string][]byte{}
	errs := broker.Each(t.Context(), keyed("a", "b", "a", "", "b", "a", ""), 4, func(_ context.Context, m *postrider.Message) error {
		mu.Lock()
		defer mu.Unlock()
		sent[m.Key] = append(sent[m.Key], m.Payload[0])
		return nil
	})
	if errs != nil {
		t.Fatalf("got %v, want nil when all are sent", errs)
	}
	if !slices.Equal(sent["a"], []byte{0, 2, 5}) || !slices.Equal(sent["b"], []byte{1, 4}) || len(sent[""]) != 2 {
		t.Errorf("sent %v", sent)
	}
}

func TestEachStopsAKeyAtItsFailure(t *testing.T) {
	bad := errors.New("bad")
	errs := broker.Each(t.Context(), keyed("a", "a", "a", "b", "", ""), 4, func(_ context.Context, m *postrider.Message) error {
		if i := m.Payload[0]; i == 1 || i == 4 {
			return postrider.Permanent(bad)
		}
		return nil
	})
	for i, want := range []error{nil, bad, postrider.ErrNotTried, nil, bad, nil} {
		if !errors.Is(errs[i], want) || (want == nil) != (errs[i] == nil) {
			t.Errorf("message %d: got %v, want %v", i, errs[i], want)
		}
	}
}

// A call that takes longer than its deadline must not be cut off in the middle of a message.
func TestEachBeginsNothingLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		errs := broker.Each(ctx, keyed(slices.Repeat([]string{"a", "b", "c"}, 8)...), 2, func(ctx context.Context, _ *postrider.Message) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(1100 * time.Millisecond):
				return nil
			}
		})
		sent := 0
		for i, err := range errs {
			switch {
			case err == nil:
				sent++
			case !errors.Is(err, postrider.ErrNotTried):
				t.Errorf("message %d: %v, want ErrNotTried", i, err)
			}
		}
		if sent != 10 {
			t.Errorf("%d messages were sent, want 5 of each of two keys", sent)
		}
	})
}

func TestEachIsParallelAndBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int32
		begin := time.Now()
		keys := make([]string, 12) // in no order
		broker.Each(t.Context(), keyed(keys...), 4, func(context.Context, *postrider.Message) error {
			most.Store(max(most.Load(), now.Add(1)))
			time.Sleep(time.Second)
			now.Add(-1)
			return nil
		})
		if most.Load() != 4 || time.Since(begin) != 3*time.Second {
			t.Errorf("at most %d at a time, all in %v", most.Load(), time.Since(begin))
		}
	})
}

func TestEachEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	errs := broker.Each(ctx, keyed("a", "b", "c"), 1, func(context.Context, *postrider.Message) error {
		cancel()
		return nil
	})
	if errs[0] != nil || postrider.ClassOf(errs[1]) != postrider.ClassUnavailable || !errors.Is(errs[2], context.Canceled) {
		t.Errorf("got %v", errs)
	}
}
