package brokertest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postrider/postrider"
)

// testAcknowledgedAfterHandler stops a consumer with an unfinished message: that message is
// redelivered, finished ones are not.
func testAcknowledgedAfterHandler(t *testing.T, h Harness) {
	name := h.Create(t)
	msgs := messages(name, 10, 10)
	publish(t, h.direct(t), msgs...)

	stuck := msgs[4].ID
	entered := make(chan struct{})
	once := sync.OnceFunc(func() { close(entered) })
	first := h.listenWith(t, name, "ack", func(ctx context.Context, m postrider.Message) error {
		if m.ID != stuck {
			return nil
		}
		once()
		return errors.New("not done")
	})
	rest := append(append([]postrider.Message{}, msgs[:4]...), msgs[5:]...)
	first.wait(t, rest)
	select {
	case <-entered:
	case <-time.After(waitLimit):
		t.Fatal("the handler was not called")
	}
	first.stop()

	last := message(name, "last", 99)
	publish(t, h.direct(t), last)
	second := h.listen(t, name, "ack")
	got := second.wait(t, []postrider.Message{msgs[4], last})
	for _, m := range got {
		if m.ID != stuck && m.ID != last.ID {
			t.Errorf("message %s was acknowledged and came again", m.ID)
		}
	}
}

// testFailingHandlerHoldsItsKey lets a handler fail twice: the message is redelivered, its key
// waits, other keys continue.
func testFailingHandlerHoldsItsKey(t *testing.T, h Harness) {
	name := h.Create(t)
	msgs := messages(name, 2, 10)
	publish(t, h.direct(t), msgs...)
	var failures atomic.Int32
	got := h.listenWith(t, name, "fail", func(_ context.Context, m postrider.Message) error {
		if m.ID == msgs[2].ID && failures.Add(1) <= 2 {
			return errors.New("try again")
		}
		return nil
	}).wait(t, msgs)
	if failures.Load() != 3 {
		t.Errorf("the handler was called %d times with the failing message, want 3", failures.Load())
	}
	h.expectOrder(t, got)
}

func testBoundedInFlight(t *testing.T, h Harness) {
	const limit = 4
	name := h.Create(t)
	msgs := messages(name, 40, 40)
	publish(t, h.direct(t), msgs...)

	var now, most atomic.Int32
	gate := make(chan struct{})
	full := make(chan struct{})
	onFull := sync.OnceFunc(func() { close(full) })
	var left sync.WaitGroup
	left.Add(len(msgs))
	seen := sync.Map{}
	start(t, h.Consumer(t, name, "bound", limit), func(_ context.Context, m postrider.Message) error {
		n := now.Add(1)
		defer now.Add(-1)
		for {
			before := most.Load()
			if n <= before || most.CompareAndSwap(before, n) {
				break
			}
		}
		if n == limit {
			onFull()
		}
		<-gate
		if _, again := seen.LoadOrStore(m.ID, true); !again {
			left.Done()
		}
		return nil
	})
	select {
	case <-full:
	case <-time.After(waitLimit):
		t.Errorf("at most %d messages were handled at a time, want %d", most.Load(), limit)
	}
	close(gate)
	done := make(chan struct{})
	go func() { left.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(waitLimit):
		t.Fatal("not all messages were handled")
	}
	if most.Load() > limit {
		t.Errorf("%d messages were handled at a time, want at most %d", most.Load(), limit)
	}
}

// testConsumerSurvivesOutage restarts the server while a consumer waits.
func testConsumerSurvivesOutage(t *testing.T, h Harness) {
	h.needsRestart(t)
	name := h.Create(t)
	p := h.direct(t)
	l := h.listen(t, name, "survivor")
	before := messages(name, 10, 10)
	publish(t, p, before...)
	l.wait(t, before)
	h.Restart(t)
	after := messages(name, 10, 10)
	insist(t, p, after)
	l.wait(t, after)
}

func testCloseTwice(t *testing.T, h Harness) {
	name := h.Create(t)
	p := h.Publisher(t, h.Server)
	publish(t, p, message(name, "k", 0))
	c := h.Consumer(t, name, "close", 1)
	for range 2 {
		if err := p.Close(); err != nil {
			t.Errorf("publisher: %v", err)
		}
		if err := c.Close(); err != nil {
			t.Errorf("consumer: %v", err)
		}
	}
}
