package pulsar

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/brokertest/flaky"
	"github.com/postrider/postrider/internal/need"
)

// TestOrderThroughResets resets connections while several goroutines publish, each with its own key
// and many messages in flight: nothing may be confirmed after a failure, and first receipts must be
// in order.
func TestOrderThroughResets(t *testing.T) {
	t.Parallel()
	const senders, calls, size = 4, 20, 100
	topic := createTopic(t)
	proxy := flaky.Listen(t, strings.TrimPrefix(need.Env(t, "POSTRIDER_TEST_PULSAR", "pulsar"), "pulsar://"))
	p := open(t, func(c *Config) { c.URL = "pulsar://" + proxy.Addr() })
	var run sync.WaitGroup
	for sender := range senders {
		run.Go(func() {
			next := 0
			for n := range calls {
				if n%5 == sender {
					run.Go(proxy.Reset)
				}
				for end := (n + 1) * size; next < end; {
					next += confirmedPrefix(t, p, topic, strconv.Itoa(sender), next, end)
				}
			}
		})
	}
	run.Wait()
	seen := make(map[string]int)
	repeated := 0
	for _, r := range receiveAll(t, topic, senders*calls*size) {
		switch want := seen[r.key]; {
		case r.n == want:
			seen[r.key]++
		case r.n > want:
			t.Fatalf("key %s: %d came before %d", r.key, r.n, want)
		default:
			repeated++
		}
	}
	for sender := range senders {
		if got := seen["parcel/"+strconv.Itoa(sender)]; got != calls*size {
			t.Errorf("sender %d: %d of %d messages arrived", sender, got, calls*size)
		}
	}
	t.Logf("%d messages arrived again", repeated)
}

// confirmedPrefix publishes messages next to end of a goroutine and returns how many of them were
// confirmed.
func confirmedPrefix(t *testing.T, p *Publisher, topic, sender string, next, end int) int {
	var msgs []postrider.Message
	for i := next; i < end; i++ {
		msgs = append(msgs, message(topic, sender, strconv.Itoa(i)))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	errs := p.Publish(ctx, msgs)
	if errs == nil {
		return len(msgs)
	}
	confirmed := 0
	for i, err := range errs {
		if err == nil && confirmed == i {
			confirmed++
		} else if err == nil {
			t.Errorf("sender %s: message %d was confirmed behind a failed one", sender, next+i)
		}
	}
	return confirmed
}

type receipt struct {
	key string
	n   int
}

// receiveAll receives until want different messages have arrived, and returns all receipts.
func receiveAll(t *testing.T, topic string, want int) []receipt {
	t.Helper()
	c, err := NewConsumer(Config{
		URL: need.Env(t, "POSTRIDER_TEST_PULSAR", "pulsar"), Name: topic, Group: "reader",
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var mu sync.Mutex
	var all []receipt
	different := make(map[receipt]bool)
	err = c.Consume(ctx, func(_ context.Context, m postrider.Message) error {
		n, err := strconv.Atoi(string(m.Payload))
		mu.Lock()
		defer mu.Unlock()
		all = append(all, receipt{m.OrderKey(), n})
		if different[all[len(all)-1]] = true; len(different) == want {
			cancel()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestBehindALargeMessage sends messages of one key behind large ones, one of which exceeds the
// limit only together with its headers.
func TestBehindALargeMessage(t *testing.T) {
	t.Parallel()
	topic := createTopic(t)
	p := open(t, nil)
	var msgs []postrider.Message
	for i, size := range []int{1, large + 1, 2, 5<<20 - 10, 3} {
		m := message(topic, "k", "")
		m.Payload = make([]byte, size)
		m.Headers = map[string]string{"n": fmt.Sprint(i)}
		msgs = append(msgs, m)
	}
	errs := p.Publish(t.Context(), msgs)
	if len(errs) != 5 || errs[0] != nil || errs[1] != nil || errs[2] != nil {
		t.Fatalf("got %v", errs)
	}
	if postrider.ClassOf(errs[3]) != postrider.ClassPermanent {
		t.Errorf("too large with its headers: got %v", errs[3])
	}
	if postrider.ClassOf(errs[4]) != postrider.ClassUnavailable {
		t.Errorf("behind it: got %v", errs[4])
	}
}
