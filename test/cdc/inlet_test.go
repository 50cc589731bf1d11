package cdc_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/codec"
	"github.com/postrider/postrider/broker/kafka"
)

// inlet collects what arrives at Kafka.
type inlet struct {
	mu   sync.Mutex
	msgs []postrider.Message
}

func consume(t *testing.T, servers, topic string) *inlet {
	t.Helper()
	c, err := kafka.NewConsumer(kafka.Config{
		URL: "kafka://" + servers, Name: topic, Group: topic, Format: codec.Debezium, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	in := &inlet{}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- c.Consume(ctx, func(_ context.Context, m postrider.Message) error {
			in.mu.Lock()
			defer in.mu.Unlock()
			in.msgs = append(in.msgs, m)
			return nil
		})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		_ = c.Close()
	})
	return in
}

// wait waits until everything in want has arrived.
func (in *inlet) wait(t *testing.T, want []postrider.Message) {
	t.Helper()
	missing := len(want)
	for deadline := time.Now().Add(2 * time.Minute); missing > 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d messages have not arrived", missing, len(want))
		}
		seen := map[postrider.ID]bool{}
		in.mu.Lock()
		for _, m := range in.msgs {
			seen[m.ID] = true
		}
		in.mu.Unlock()
		missing = 0
		for _, m := range want {
			if !seen[m.ID] {
				missing++
			}
		}
	}
}

// waitFor waits until the given number of messages has arrived.
func (in *inlet) waitFor(t *testing.T, count int) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
		in.mu.Lock()
		arrived := len(in.msgs)
		in.mu.Unlock()
		if arrived >= count {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d messages have arrived, want %d", arrived, count)
		}
	}
}

// check checks that each message has arrived as it was sent, that each key is in order, and that
// nothing else has arrived.
func (in *inlet) check(t *testing.T, kind string, sent []postrider.Message) {
	t.Helper()
	in.mu.Lock()
	defer in.mu.Unlock()
	place := map[postrider.ID]int{}
	for i, m := range sent {
		place[m.ID] = i
	}
	last, seen := map[string]int{}, map[postrider.ID]bool{}
	for _, m := range in.msgs {
		i, ok := place[m.ID]
		if !ok {
			t.Fatalf("got %s, which was not sent", m.Payload)
		}
		want := sent[i]
		if m.Type != want.Type || m.AggregateType != kind || m.AggregateID != want.AggregateID || !bytes.Equal(m.Payload, want.Payload) ||
			m.Headers["tenant"] != "acme" || m.ContentType != want.ContentType ||
			m.Headers["headers"] != fmt.Sprintf(`{"traceparent": "%s"}`, want.Headers["traceparent"]) {
			t.Fatalf("got  %+v\nwant %+v", m, want)
		}
		if seen[m.ID] {
			continue
		}
		seen[m.ID] = true
		if before, ok := last[m.AggregateID]; ok && i < before {
			t.Fatalf("key %s: message %d came after %d", m.AggregateID, i, before)
		}
		last[m.AggregateID] = i
	}
	t.Logf("%d messages arrived, %d repetitions", len(seen), len(in.msgs)-len(seen))
}
