package brokertest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postrider/postrider"
)

// testFailingKeyHoldsNobodyUp puts more messages of a failing key in front than are handled
// concurrently: all others must be handled, and finally those of the key.
func testFailingKeyHoldsNobodyUp(t *testing.T, h Harness) {
	testHoldsNobodyUp(t, h, func() error { return errors.New("not yet") })
}

// testPanicHoldsNobodyUp does the same with a handler that panics.
func testPanicHoldsNobodyUp(t *testing.T, h Harness) {
	testHoldsNobodyUp(t, h, func() error { panic("not yet") })
}

func testHoldsNobodyUp(t *testing.T, h Harness, fail func() error) {
	name := h.Create(t)
	p := h.direct(t)
	var bad, others []postrider.Message
	for n := range 64 {
		bad = append(bad, message(name, "bad", n))
	}
	others = messages(name, 20, h.many(1000))
	publishInOrder(t, p, 1, bad)
	publishInOrder(t, p, 20, others)
	var mended atomic.Bool
	begin := time.Now()
	l := h.listenWith(t, name, "fail", func(_ context.Context, m postrider.Message) error {
		if m.AggregateID == "bad" && !mended.Load() {
			return fail()
		}
		return nil
	})
	h.expectOrder(t, l.wait(t, others))
	t.Logf("%d others were handled after %v", len(others), time.Since(begin).Round(time.Millisecond))
	mended.Store(true)
	h.expectOrder(t, l.wait(t, bad))
}

// testDeadLetter lets a handler fail too often: the message must move to the dead-letter name once,
// and its key must continue.
func testDeadLetter(t *testing.T, h Harness) {
	if h.Burying == nil {
		t.Skip("n/a: has no names for dead letters")
	}
	name, dead := h.Create(t), h.Create(t)
	msgs := messages(name, 2, 6)
	publishInOrder(t, h.direct(t), 2, msgs)
	var calls atomic.Int32
	l := collect(t, h.Burying(t, name, "bury", dead), func(_ context.Context, m postrider.Message) error {
		if m.ID == msgs[2].ID {
			calls.Add(1)
			return errors.New("never\nsuch a thing")
		}
		return nil
	})
	got := l.wait(t, append(append([]postrider.Message{}, msgs[:2]...), msgs[3:]...))
	h.expectOrder(t, got)
	moved := find(t, h.listen(t, dead, "dead").wait(t, msgs[2:3]), msgs[2]) // without order, it may be the last
	l.stop()
	if calls.Load() != 2 {
		t.Errorf("the handler was called %d times with the message, want 2", calls.Load())
	}
	if string(moved.Payload) != string(msgs[2].Payload) || moved.OrderKey() != msgs[2].OrderKey() || moved.Topic != dead {
		t.Errorf("the dead letter is %+v", moved)
	}
	header := func(name string) string {
		value, _ := lookup(moved.Headers, name, h.FoldsHeaderNames)
		return value
	}
	if header("postrider-dead-from") != name || header("postrider-dead-attempts") != "2" || header("postrider-dead-error") != "never such a thing" {
		t.Errorf("the dead letter's headers are %v", moved.Headers)
	}
	again := h.listen(t, name, "bury")
	last := message(name, "key-0", 100)
	publish(t, h.direct(t), last)
	for _, m := range again.wait(t, []postrider.Message{last}) {
		if m.ID == msgs[2].ID {
			t.Error("the dead letter came again")
		}
	}
}
