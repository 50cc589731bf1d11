package brokertest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
)

// senderOf returns a context of the sender of a test under a term.
func senderOf(t *testing.T, name string, term int64) context.Context {
	return broker.WithSender(t.Context(), broker.Sender{Name: "sender of " + name, Term: term})
}

func (h Harness) needsRecall(t *testing.T) {
	t.Helper()
	if !h.Recalls {
		t.Skip("n/a: the destination cannot report what it stores")
	}
}

// nameOf returns the name under which p recalls what it was given for the topic name.
func nameOf(p postrider.Publisher, name string) string {
	if namer, ok := p.(broker.Namer); ok {
		m := message(name, "k", 0)
		return namer.NameOf(&m)
	}
	return ""
}

// recall returns the IDs that the names hold, and asks until each has answered.
func recall(ctx context.Context, t *testing.T, p postrider.Publisher, since time.Time, names ...string) map[string]bool {
	t.Helper()
	ids := make(map[string]bool)
	for i, name := range names {
		names[i] = nameOf(p, name)
	}
	for deadline := time.Now().Add(waitLimit); ; {
		errs := broker.Recall(ctx, p, names, since, func(id string) { ids[id] = true })
		if len(errs) != 0 && len(errs) != len(names) {
			t.Fatalf("got %d errors for %d names", len(errs), len(names))
		}
		err := errors.Join(errs...)
		if err == nil {
			return ids
		}
		if errors.Is(err, broker.ErrCannotRecall) || errors.Is(err, broker.ErrFenced) || time.Now().After(deadline) {
			t.Fatalf("recalling %q: %v", names, err)
		}
	}
}

// without returns the messages whose IDs are not among ids.
func without(msgs []postrider.Message, ids map[string]bool) []postrider.Message {
	return slices.DeleteFunc(slices.Clone(msgs), func(m postrider.Message) bool { return ids[m.BrokerID()] })
}

// testRecall asks for what was stored under several names, among them one that holds nothing: exactly
// the messages that were published must be found, however many there are.
func testRecall(t *testing.T, h Harness) {
	h.needsRecall(t)
	first, second, empty := h.Create(t), h.Create(t), h.Create(t)
	p := h.direct(t)
	begin := time.Now()
	msgs := messages(first, 20, h.many(2500))
	msgs[1].WireID = "outbox-" + msgs[1].ID.String()
	msgs[2].Payload = slices.Repeat([]byte("x"), 100_000)
	others := messages(second, 20, 20)
	old := senderOf(t, first, 1)
	for _, part := range [][]postrider.Message{msgs, others} {
		for msgs := range slices.Chunk(part, 500) {
			if err := errors.Join(p.Publish(old, msgs)...); err != nil {
				t.Fatal(err)
			}
		}
	}
	ids := recall(senderOf(t, first, 2), t, h.direct(t), begin, first, second, empty)
	if lost := without(append(msgs, others...), ids); len(lost) > 0 {
		t.Errorf("%d of %d stored messages were not found", len(lost), len(msgs)+len(others))
	}
	if len(ids) != len(msgs)+len(others) {
		t.Errorf("found %d IDs, want %d", len(ids), len(msgs)+len(others))
	}
}

// testRecallOfOld asks for what was stored long after the last message: nothing is found, or at
// most what was.
func testRecallOfOld(t *testing.T, h Harness) {
	h.needsRecall(t)
	name := h.Create(t)
	p := h.direct(t)
	publish(t, p, message(name, "k", 0))
	ids := recall(senderOf(t, name, 1), t, p, time.Now().Add(24*time.Hour), name)
	if len(ids) > 0 {
		t.Errorf("found %v, stored a day before", ids)
	}
}

// testRecallOfAnotherSource asks for two messages, of which one is stored, and the other only as an
// event of another source with the same ID. A relay would take that for its own, and not send it.
func testRecallOfAnotherSource(t *testing.T, h Harness) {
	h.needsRecall(t)
	if h.Elsewhere == nil {
		t.Skip("n/a: messages of two sources cannot have the same ID")
	}
	name := h.Create(t)
	elsewhere := h.Elsewhere(t)
	defer elsewhere.Close()
	begin := time.Now()
	msgs := messages(name, 2, 2)
	publish(t, elsewhere, msgs...)
	p := h.direct(t)
	publish(t, p, msgs[1])
	ids := recall(senderOf(t, name, 1), t, p, begin, name)
	if ids[msgs[0].BrokerID()] || !ids[msgs[1].BrokerID()] {
		t.Errorf("found %v, want only %s: the other message has another source", ids, msgs[1].BrokerID())
	}
}

// testRecallAfterLostAnswers publishes without getting answers. Another process recalls, and
// publishes what was not found: each message must be stored exactly once.
func testRecallAfterLostAnswers(t *testing.T, h Harness) {
	h.needsRecall(t)
	name := h.Create(t)
	old, proxy := h.proxied(t)
	first := messages(name, 10, 10)
	if err := errors.Join(old.Publish(senderOf(t, name, 1), first)...); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	proxy.SwallowAnswers()
	msgs := messages(name, 20, 200)
	ctx, cancel := context.WithTimeout(senderOf(t, name, 1), 2*time.Second)
	defer cancel()
	_ = old.Publish(ctx, msgs[:100])
	h.expectOnce(t, name, begin, first, msgs)
}

// testFencedSender holds the requests of a publisher in the network while another process takes
// over, and forwards them then. They must not be stored in addition, nor what the publisher is given
// afterwards.
func testFencedSender(t *testing.T, h Harness) {
	h.needsRecall(t)
	name := h.Create(t)
	old, proxy := h.proxied(t)
	first := messages(name, 20, 20)
	for i := range first { // one by one, so that all connections are open
		if err := errors.Join(old.Publish(senderOf(t, name, 1), first[i:i+1])...); err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
	}
	begin := time.Now()
	release := proxy.HoldRequests()
	msgs := messages(name, 20, 200)
	ctx, cancel := context.WithTimeout(senderOf(t, name, 1), 3*time.Second)
	defer cancel()
	var run sync.WaitGroup
	run.Go(func() { _ = old.Publish(ctx, msgs[:100]) })
	time.Sleep(200 * time.Millisecond) // until they are in the proxy; earlier would find less
	h.expectOnce(t, name, begin, first, msgs, func() {
		release()
		run.Wait()
		for i, err := range old.Publish(senderOf(t, name, 1), msgs[:50]) {
			if err != nil && !errors.Is(err, broker.ErrFenced) && !errors.Is(err, postrider.ErrNotTried) {
				t.Errorf("message %d: got %v, want ErrFenced", i, err)
			}
		}
	})
}

// expectOnce recalls under a higher term, publishes those of msgs that were not found, calls the
// functions, and fails unless all messages are stored exactly once.
func (h Harness) expectOnce(t *testing.T, name string, since time.Time, first, msgs []postrider.Message, then ...func()) {
	t.Helper()
	p := h.direct(t)
	ctx := senderOf(t, name, 2)
	ids := recall(ctx, t, p, since, name)
	rest := without(msgs, ids)
	t.Logf("%d of %d messages were found", len(msgs)-len(rest), len(msgs))
	if err := errors.Join(p.Publish(ctx, rest)...); err != nil {
		t.Fatal(err)
	}
	for _, f := range then {
		f()
	}
	last := messages(name, 20, 220)[200:] // of each key: handled after everything that is stored now
	publish(t, p, last...)
	want := slices.Concat(first, msgs, last)
	got := h.listen(t, name, "once").wait(t, want)
	if len(got) != len(want) {
		t.Errorf("%d messages are stored %d times", len(want), len(got))
	}
	h.expectOrder(t, got)
}

// testLowerTerm recalls under a term after a higher one has: it must be refused, and neither term's
// fence may fall. Senders of other names are not concerned.
func testLowerTerm(t *testing.T, h Harness) {
	h.needsRecall(t)
	if h.Dedup {
		t.Skip("n/a: repetitions are dropped, also those of other senders")
	}
	name := h.Create(t)
	p := h.direct(t)
	_ = recall(senderOf(t, name, 7), t, p, time.Now(), name)
	errs := broker.Recall(senderOf(t, name, 6), p, []string{nameOf(p, name)}, time.Now(), func(string) {})
	if err := errors.Join(errs...); !errors.Is(err, broker.ErrFenced) {
		t.Errorf("a lower term recalls: %v, want ErrFenced", err)
	}
	for term, want := range map[int64]bool{6: false, 7: true, 8: true} {
		err := errors.Join(p.Publish(senderOf(t, name, term), messages(name, 3, 3))...)
		if (err == nil) != want || err != nil && !errors.Is(err, broker.ErrFenced) {
			t.Errorf("publishing under term %d: %v", term, err)
		}
	}
	if err := errors.Join(p.Publish(senderOf(t, "another", 1), messages(name, 3, 3))...); err != nil {
		t.Errorf("publishing for another sender: %v", err)
	}
	_ = recall(senderOf(t, name, 7), t, p, time.Now(), name)
}
