package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/brokertest/flaky"
	"github.com/postrider/postrider/broker/intake"
)

func parcel(topic, key string, n int) postrider.Message {
	m := postrider.Event("parcel.moved", postrider.Aggregate{Type: "parcel", ID: key}, []byte(strconv.Itoa(n)))
	m.Topic = topic
	return m
}

func open1(t testing.TB, cfg Config) *Publisher {
	t.Helper()
	p, err := NewPublisher(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// insist publishes as a relay does: one call at a time, and failed messages first in the next one.
func insist(ctx context.Context, p *Publisher, msgs []postrider.Message, batch int) (calls, failures int, err error) {
	for pending := msgs; len(pending) > 0; {
		n := min(batch, len(pending))
		part, rest := pending[:n], pending[n:]
		errs := p.Publish(ctx, part)
		calls++
		var again []postrider.Message
		for i, e := range errs {
			if postrider.ClassOf(e) == postrider.ClassPermanent && e != nil {
				return calls, failures, fmt.Errorf("message %s was refused: %w", part[i].Payload, e)
			}
			if e != nil {
				failures++
				again = append(again, part[i])
			}
		}
		if ctx.Err() != nil {
			return calls, failures, ctx.Err()
		}
		pending = append(again, rest...)
	}
	return calls, failures, nil
}

// receive reads the topic until each of want messages has arrived, and checks the order of first
// receipts by key.
func receive(t *testing.T, topic string, want int) (receipts int) {
	t.Helper()
	c, err := NewConsumer(Config{URL: "kafka://" + server(t), Name: topic, Group: topic, InFlight: 500})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	var mu sync.Mutex
	seen := make(map[string]bool)
	last := make(map[string]int)
	err = c.Consume(ctx, func(_ context.Context, m postrider.Message) error {
		mu.Lock()
		defer mu.Unlock()
		receipts++
		if seen[m.BrokerID()] {
			return nil
		}
		seen[m.BrokerID()] = true
		n, err := strconv.Atoi(string(m.Payload))
		if err != nil {
			t.Errorf("payload %q", m.Payload)
		}
		if before, ok := last[m.OrderKey()]; ok && n < before {
			t.Errorf("key %s: message %d came first after %d", m.OrderKey(), n, before)
		}
		last[m.OrderKey()] = n
		if len(seen) == want {
			cancel()
		}
		return nil
	})
	if err != nil || len(seen) != want {
		t.Errorf("%d of %d messages have arrived, %v", len(seen), want, err)
	}
	return receipts
}

// TestOrderUnderResets repeatedly cuts all connections while four goroutines publish: once with
// enough time to learn the outcome of each batch, and once with so little that many outcomes stay
// unknown.
func TestOrderUnderResets(t *testing.T) {
	t.Parallel()
	for _, timeout := range []time.Duration{30 * time.Second, 150 * time.Millisecond} {
		t.Run(timeout.String(), func(t *testing.T) { testOrderUnderResets(t, timeout) })
	}
}

func testOrderUnderResets(t *testing.T, timeout time.Duration) {
	const senders, keys, messages = 4, 50, 20_000
	topic := newTopic(t, nil)
	proxy := flaky.Listen(t, server(t))
	p := open1(t, Config{URL: "kafka://" + server(t), Dial: to(proxy.Addr()), Timeout: timeout})
	all := make([][]postrider.Message, senders)
	for n := range messages {
		key := n % keys
		all[key%senders] = append(all[key%senders], parcel(topic, strconv.Itoa(key), n))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	over := make(chan struct{})
	var fault sync.WaitGroup
	fault.Go(func() {
		tick := time.NewTicker(200 * time.Millisecond) // interval of the faults
		defer tick.Stop()
		defer proxy.Restore()
		for n := range 50 { // a limited number, so that the test ends on a slow machine
			select {
			case <-over:
				return
			case <-tick.C:
				proxy.Restore()
				if n%3 == 1 {
					proxy.SwallowAnswers()
				}
				proxy.Reset()
			}
		}
	})
	var run sync.WaitGroup
	for _, msgs := range all {
		run.Go(func() {
			calls, failures, err := insist(ctx, p, msgs, 100)
			if err != nil {
				t.Error(err)
			}
			t.Logf("%d calls, %d failures", calls, failures)
		})
	}
	run.Wait()
	close(over)
	fault.Wait()
	receipts := receive(t, topic, messages)
	t.Logf("%d messages, %d receipts: %d repetitions", messages, receipts, receipts-messages)
}

// TestKeyAcrossTopics sends one key to two topics, one of which is missing: nothing of the key must
// be accepted after the refused message, and other keys must not be affected.
func TestKeyAcrossTopics(t *testing.T) {
	t.Parallel()
	one, two := newTopic(t, nil), newTopic(t, nil)
	p := open1(t, Config{URL: "kafka://" + server(t)})
	msgs := []postrider.Message{
		parcel(one, "a", 0), parcel(two, "a", 1), parcel("missing-"+one, "a", 2), parcel(one, "a", 3),
		parcel(one, "b", 4), parcel(two, "b", 5), parcel("not a name", "c", 6), parcel(two, "c", 7), parcel("missing-"+one, "d", 8),
	}
	want := []postrider.Class{-1, -1, postrider.ClassUnavailable, postrider.ClassUnavailable, -1, -1,
		postrider.ClassPermanent, postrider.ClassUnavailable, postrider.ClassUnavailable}
	errs := p.Publish(t.Context(), msgs)
	expectClasses(t, errs, want)
	if !errors.Is(errs[3], postrider.ErrNotTried) || !errors.Is(errs[7], postrider.ErrNotTried) {
		t.Errorf("behind a failure: got %v and %v", errs[3], errs[7])
	}
}

func expectClasses(t *testing.T, errs []error, want []postrider.Class) {
	t.Helper()
	if len(errs) != len(want) {
		t.Fatalf("got %d errors, want %d", len(errs), len(want))
	}
	for i, class := range want {
		if (errs[i] == nil) != (class == -1) || errs[i] != nil && postrider.ClassOf(errs[i]) != class {
			t.Errorf("message %d: got %v, want class %v", i, errs[i], class)
		}
	}
}

func TestOnlyWhatIsDoneIsCommitted(t *testing.T) {
	t.Parallel()
	client, err := kgo.NewClient() // it has no group and ignores marked offsets
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for range 200 {
		n := 1 + rand.IntN(50)
		in := intake.Open(t.Context(), nil, intake.Config{})
		ps := &partitions{topic: "t", in: in, log: slog.Default(), client: client, all: make(map[int32]*partition)}
		ps.assigned(t.Context(), nil, map[string][]int32{"t": {3}})
		var done []func()
		for i := range n {
			_, finish := ps.begin(&kgo.Record{Partition: 3, Offset: int64(10 + 10*i), LeaderEpoch: 7}) // offsets have gaps
			done = append(done, finish)
		}
		finished := make([]bool, n+1)
		for _, i := range rand.Perm(n) {
			done[i]()
			finished[i] = true
			first := slices.Index(finished, false)
			want := int64(10 + 10*first)
			if first == n {
				want = int64(10*n + 1)
			}
			if at := ps.all[3].position(); at != (kgo.EpochOffset{Epoch: 7, Offset: want}) {
				t.Fatalf("after %v: commits %v, want %d", finished, at, want)
			}
		}
		if len(ps.all[3].open) != 0 {
			t.Fatal("records are open when all is done")
		}
	}
}
