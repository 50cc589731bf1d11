package brokertest

import (
	"context"
	"testing"
	"time"

	"github.com/postrider/postrider"
)

// isOutage reports whether a failure means that the server cannot be reached: nothing was sent.
func (h Harness) isOutage(f failure) bool {
	return f == ofDestination || h.OutageOfNames && f == ofName
}

// expectDown publishes to a server that is down: Publish must report that soon, and as a failure of
// the server, not of the message.
func (h Harness) expectDown(t *testing.T, p postrider.Publisher, msgs []postrider.Message) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	begin := time.Now()
	errs := p.Publish(ctx, msgs)
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("Publish took %v, long after its deadline of 3 s", took)
	}
	if len(errs) != len(msgs) {
		t.Fatalf("got %d errors, want one a message", len(errs))
	}
	for i, err := range errs {
		if f := failureOf(err); !h.isOutage(f) {
			t.Fatalf("message %d: %v error %v, want %v", i, f, err, ofDestination)
		}
	}
}

func testAbsentAtStart(t *testing.T, h Harness) {
	name := h.Create(t)
	proxy := h.proxy(t)
	proxy.Cut()
	p := h.publisher(t, proxy.Addr())
	msgs := messages(name, 5, 20)
	h.expectDown(t, p, msgs)
	proxy.Restore()
	insist(t, p, msgs)
	h.listen(t, name, "absent").wait(t, msgs)
}

func testOutageAndRecovery(t *testing.T, h Harness) {
	name := h.Create(t)
	p, proxy := h.proxied(t)
	msgs := messages(name, 20, 20)
	publish(t, p, msgs...)
	for range 3 {
		proxy.Cut()
		down := messages(name, 20, 20)
		h.insistDown(t, p, down)
		proxy.Restore()
		insist(t, p, down)
		msgs = append(msgs, down...)
	}
	h.listen(t, name, "outage").wait(t, msgs)
}

// insistDown publishes until the publisher has noticed that the server is down: the first call may
// find the connection broken, with an unknown outcome.
func (h Harness) insistDown(t *testing.T, p postrider.Publisher, msgs []postrider.Message) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	for i, err := range p.Publish(ctx, msgs) {
		if err == nil || postrider.ClassOf(err) == postrider.ClassPermanent {
			t.Fatalf("message %d: got %v from a server that is gone", i, err)
		}
	}
	cancel()
	h.expectDown(t, p, msgs)
}

// testUnknownOutcome suppresses the confirmations: the messages are stored, but the publisher
// cannot know.
func testUnknownOutcome(t *testing.T, h Harness) {
	name := h.Create(t)
	p, proxy := h.proxied(t)
	first := messages(name, 20, 100)
	for i := range first { // one by one, so that all connections of the publisher are open
		publish(t, p, first[i])
	}
	proxy.SwallowAnswers()
	msgs := messages(name, 20, 20)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	begin := time.Now()
	errs := p.Publish(ctx, msgs)
	cancel()
	if took := time.Since(begin); took > 4*time.Second {
		t.Errorf("Publish took %v, long after its deadline of 2 s", took)
	}
	if len(errs) != len(msgs) {
		t.Fatalf("got %d errors for %d messages without a confirmation", len(errs), len(msgs))
	}
	lost := 0
	for i, err := range errs {
		if f := failureOf(err); f == unknown {
			lost++
		} else if !h.isOutage(f) {
			t.Errorf("message %d: %v error %v without an answer", i, f, err)
		}
		if err == nil {
			t.Fatalf("message %d: confirmed without an answer", i)
		}
	}
	proxy.Restore()
	insist(t, p, msgs)
	got := h.listen(t, name, "unknown").wait(t, append(first, msgs...))
	t.Logf("%d messages arrived %d times", len(first)+len(msgs), len(got))
	if lost == 0 && (h.Dedup || len(got) != len(first)+len(msgs)) { // a transaction that has not been ended is known to have stored nothing
		t.Errorf("no outcome is unknown: got %v", errs)
	}
	if h.Dedup && len(got) != len(first)+len(msgs) {
		t.Errorf("repetitions were not dropped")
	}
}

// testStopInMidBatch cancels a running Publish: messages reported as confirmed must be stored, and
// the others have an error.
func testStopInMidBatch(t *testing.T, h Harness) {
	name := h.Create(t)
	p, proxy := h.proxied(t)
	publish(t, p, message(name, "first", 0))
	proxy.Delay(20 * time.Millisecond)
	msgs := messages(name, 5000, h.many(5000))
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Millisecond)
	defer cancel()
	begin := time.Now()
	errs := p.Publish(ctx, msgs)
	if took := time.Since(begin); took > 3*time.Second {
		t.Errorf("Publish returned %v after it had begun, its context ended after 60 ms", took)
	}
	if len(errs) != 0 && len(errs) != len(msgs) {
		t.Fatalf("got %d errors for %d messages", len(errs), len(msgs))
	}
	proxy.Restore()
	var confirmed []postrider.Message
	for i := range msgs {
		if len(errs) == 0 || errs[i] == nil {
			confirmed = append(confirmed, msgs[i])
		} else if postrider.ClassOf(errs[i]) == postrider.ClassPermanent {
			t.Fatalf("message %d was refused: %v", i, errs[i])
		}
	}
	t.Logf("%d of %d were confirmed", len(confirmed), len(msgs))
	insist(t, p, []postrider.Message{message(name, "last", 0)})
	h.listen(t, name, "stop").wait(t, confirmed)
}

func testConfirmedIsDurable(t *testing.T, h Harness) {
	h.needsRestart(t)
	name := h.Create(t)
	p := h.direct(t)
	msgs := messages(name, 1000, h.many(1000))
	publish(t, p, msgs...)
	h.Restart(t)
	after := messages(name, 10, 10)
	insist(t, p, after)
	h.listen(t, name, "durable").wait(t, append(msgs, after...))
}
