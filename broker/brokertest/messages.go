package brokertest

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/postrider/postrider"
)

// message returns a message for a name.
func message(name, key string, n int) postrider.Message {
	m := postrider.Event("parcel.moved", postrider.Aggregate{Type: "parcel", ID: key}, []byte(strconv.Itoa(n)))
	m.Topic = name
	return m
}

// messages returns n messages whose payloads count from 0, distributed over the keys in turn.
func messages(name string, keys, n int) []postrider.Message {
	msgs := make([]postrider.Message, n)
	for i := range msgs {
		msgs[i] = message(name, fmt.Sprintf("key-%d", i%keys), i)
	}
	return msgs
}

// publish publishes and expects every message to be confirmed.
func publish(t *testing.T, p postrider.Publisher, msgs ...postrider.Message) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	for i, err := range p.Publish(ctx, msgs) {
		if err != nil {
			t.Fatalf("message %d of %d was not confirmed (%v): %v", i, len(msgs), postrider.ClassOf(err), err)
		}
	}
}

// insist publishes until every message is confirmed, as a relay does: it resends failed messages in
// order. No message may be refused.
func insist(t *testing.T, p postrider.Publisher, msgs []postrider.Message) {
	t.Helper()
	for deadline := time.Now().Add(waitLimit); len(msgs) > 0; {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		errs := p.Publish(ctx, msgs)
		cancel()
		var failed []postrider.Message
		for i, err := range errs {
			if err == nil {
				continue
			}
			if postrider.ClassOf(err) == postrider.ClassPermanent {
				t.Fatalf("message was refused: %v", err)
			}
			failed = append(failed, msgs[i])
		}
		if len(failed) > 0 && time.Now().After(deadline) {
			t.Fatalf("%d messages are still not confirmed: %v", len(failed), errs)
		}
		msgs = failed
	}
}

// expectOrder fails unless the first receipts of each key are in payload order.
func (h Harness) expectOrder(t *testing.T, msgs []postrider.Message) {
	t.Helper()
	if h.Unordered {
		return
	}
	seen := make(map[postrider.ID]bool)
	last := make(map[string]int)
	for i := range msgs {
		if seen[msgs[i].ID] {
			continue
		}
		seen[msgs[i].ID] = true
		n, err := strconv.Atoi(string(msgs[i].Payload))
		if err != nil {
			t.Fatal(err)
		}
		key := msgs[i].OrderKey()
		if before, ok := last[key]; ok && n < before {
			t.Fatalf("key %s: message %d came after %d", key, n, before)
		}
		last[key] = n
	}
}
