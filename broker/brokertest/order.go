package brokertest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
)

func (h Harness) many(n int) int {
	if h.OneAtATime {
		return n / 10
	}
	return n
}

func testOrderPerKey(t *testing.T, h Harness) {
	name := h.Create(t)
	p := h.direct(t)
	msgs := messages(name, 20, h.many(5000))
	publishInOrder(t, p, 20, msgs)
	h.expectOrder(t, h.listen(t, name, "order").wait(t, msgs))
}

// testRepetition resends a message deliberately, as a replay does: it must arrive again with the
// same ID, even if the broker drops duplicates. A repetition that is itself sent twice counts once.
func testRepetition(t *testing.T, h Harness) {
	name := h.Create(t)
	p := h.direct(t)
	m := message(name, "k", 0)
	last := message(name, "k", 1)
	publish(t, p, m)
	m.Repetition = "replay-7"
	publish(t, p, m)
	publish(t, p, m)
	publish(t, p, last)
	l := h.listen(t, name, "repetition")
	count := func() (n int) {
		msgs, _ := l.received()
		for i := range msgs {
			if msgs[i].ID == m.ID && msgs[i].BrokerID() == m.BrokerID() {
				n++
			}
		}
		return n
	}
	l.wait(t, []postrider.Message{m, last})
	for deadline := time.Now().Add(waitLimit); count() < 2; {
		_, arrived := l.received()
		if count() >= 2 {
			break
		}
		select {
		case <-arrived:
		case <-time.After(time.Until(deadline)):
			t.Fatal("the repetition has not arrived")
		}
	}
	if n := count(); h.Dedup && n != 2 {
		t.Errorf("the message has arrived %d times, want twice", n)
	}
}

// testOrderAcrossTypes checks that messages of all types of an aggregate, without a topic, reach
// one consumer in order.
func testOrderAcrossTypes(t *testing.T, h Harness) {
	if h.NamesByType {
		t.Skip("n/a: names are no logs of their own")
	}
	name := h.Create(t)
	msgs := messages("", 20, h.many(1000))
	for i := range msgs {
		msgs[i].AggregateType = name
		msgs[i].Type = fmt.Sprintf("type %d", i/20%3)
	}
	publishInOrder(t, h.direct(t), 20, msgs)
	h.expectOrder(t, h.listen(t, name, "types").wait(t, msgs))
}

// publishInOrder publishes messages that are distributed over keys in turn, as a relay does: one
// message per key at a time, unless the publisher keeps order.
func publishInOrder(t *testing.T, p postrider.Publisher, keys int, msgs []postrider.Message) {
	t.Helper()
	if keeper, ok := p.(broker.OrderKeeper); ok && keeper.KeepsOrder() {
		keys = 500
	}
	for part := range slices.Chunk(msgs, keys) {
		insist(t, p, part)
	}
}

func testManyPublishesAtOnce(t *testing.T, h Harness) {
	name := h.Create(t)
	p := h.direct(t)
	var all []postrider.Message
	var run sync.WaitGroup
	for sender := range 8 {
		var msgs []postrider.Message
		for n := range h.many(500) {
			msgs = append(msgs, message(name, fmt.Sprintf("sender %d key %d", sender, n%50), n))
		}
		all = append(all, msgs...)
		run.Go(func() {
			for rest := msgs; len(rest) > 0; rest = rest[min(50, len(rest)):] {
				if errs := p.Publish(t.Context(), rest[:min(50, len(rest))]); len(errs) != 0 {
					t.Errorf("got %v", errs)
				}
			}
		})
	}
	run.Wait()
	h.expectOrder(t, h.listen(t, name, "senders").wait(t, all))
}

// testNothingBehindAFailure checks the contract of OrderKeeper: after a refused message, no message
// of its key is accepted.
func testNothingBehindAFailure(t *testing.T, h Harness) {
	name := h.Create(t)
	p := h.direct(t)
	if keeper, ok := p.(broker.OrderKeeper); !ok || !keeper.KeepsOrder() {
		t.Skip("n/a: does not keep order")
	}
	msgs := messages(name, 3, 9)
	switch { // message 3 is the second of key 0
	case h.MaxPayload > 0:
		msgs[3].Payload = make([]byte, h.MaxPayload)
	case h.Missing != nil:
		msgs[3].Topic, _ = h.Missing(t)
	case h.Forbidden != nil:
		msgs[3].Topic, _ = h.Forbidden(t)
	default:
		t.Skip("n/a: refuses nothing")
	}
	errs := p.Publish(t.Context(), msgs)
	if len(errs) != len(msgs) {
		t.Fatalf("got %d errors, want one a message", len(errs))
	}
	var accepted []postrider.Message
	for i, err := range errs {
		if err == nil {
			accepted = append(accepted, msgs[i])
		}
		if behind := i%3 == 0 && i >= 3; behind != (err != nil) {
			t.Errorf("message %d: got %v", i, err)
		}
		if err != nil && notTried(err) != (i > 3) {
			t.Errorf("message %d: got %v", i, err)
		}
	}
	l := h.listen(t, name, "behind")
	for _, m := range l.wait(t, accepted) {
		if len(missing(accepted, []postrider.Message{m})) > 0 {
			t.Errorf("message %q arrived and was not confirmed", m.Payload)
		}
	}
}
