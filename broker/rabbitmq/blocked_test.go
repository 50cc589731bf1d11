package rabbitmq_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/need"
)

// TestBlockedServer raises the server's memory alarm: the server stops reading from publishers.
func TestBlockedServer(t *testing.T) {
	need.Own(t, "rabbitmq@crash")
	name := newQueue(t, nil)
	p := publisher(t, nil)
	var msgs []postrider.Message
	for i := range 100 {
		msgs = append(msgs, event(name, fmt.Sprint(i)))
	}
	if errs := p.Publish(t.Context(), msgs); errs != nil {
		t.Fatal(errs)
	}
	calm := func() { ctl(t, "set_vm_memory_high_watermark", "0.4") }
	t.Cleanup(calm)
	for round := range 2 {
		ctl(t, "set_vm_memory_high_watermark", "0.00001")
		begin := time.Now()
		// The server reports the alarm when it receives the first message.
		errs := within(t, p, time.Second, msgs)
		for i, err := range errs {
			if err == nil || postrider.ClassOf(err) == postrider.ClassPermanent {
				t.Fatalf("round %d: message %d: %v", round, i, err)
			}
		}
		if took := time.Since(begin); took > 4*time.Second {
			t.Errorf("Publish took %v, its context ended after 1 s", took)
		}
		begin = time.Now()
		for i, err := range within(t, p, time.Minute, msgs) {
			if postrider.ClassOf(err) != postrider.ClassUnavailable {
				t.Fatalf("round %d: message %d: %v", round, i, err)
			}
		}
		if took := time.Since(begin); took > time.Second {
			t.Errorf("Publish to a server that is known to be blocked took %v", took)
		}
		begin = time.Now()
		stranger := publisher(t, nil)
		within(t, stranger, time.Second, msgs)
		if err := stranger.Close(); err != nil || time.Since(begin) > 5*time.Second {
			t.Errorf("Close: %v after %v", err, time.Since(begin))
		}
		calm()
		deadline := time.Now().Add(30 * time.Second)
		for within(t, p, 5*time.Second, msgs) != nil {
			if time.Now().After(deadline) {
				t.Fatal("the publisher has not recovered")
			}
		}
	}
}

func within(t *testing.T, p postrider.Publisher, d time.Duration, msgs []postrider.Message) []error {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	return p.Publish(ctx, msgs)
}
