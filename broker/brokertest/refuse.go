package brokertest

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
)

// failure is the class and scope that a publisher must report for a message.
type failure struct {
	class postrider.Class
	scope postrider.Scope
}

var (
	ofMessage     = failure{postrider.ClassPermanent, postrider.ScopeMessage}
	ofName        = failure{postrider.ClassUnavailable, postrider.ScopeName}
	ofDestination = failure{postrider.ClassUnavailable, postrider.ScopeDestination}
	unknown       = failure{postrider.ClassUnknown, postrider.ScopeUnknown}
)

func (f failure) String() string { return f.class.String() + " " + f.scope.String() }

func failureOf(err error) failure { return failure{postrider.ClassOf(err), postrider.ScopeOf(err)} }

func testTooLarge(t *testing.T, h Harness) {
	if h.MaxPayload == 0 {
		t.Skip("n/a: no size is refused")
	}
	name := h.Create(t)
	failSome(t, h, h.direct(t), name, ofMessage, func(m *postrider.Message) { m.Payload = make([]byte, h.MaxPayload) })

	name = h.Create(t)
	half := message(name, "half", 0)
	half.Payload = make([]byte, h.MaxPayload/2)
	publish(t, h.direct(t), half)
	if got := find(t, h.listen(t, name, "half").wait(t, []postrider.Message{half}), half); len(got.Payload) != len(half.Payload) {
		t.Errorf("got %d bytes, want %d", len(got.Payload), len(half.Payload))
	}
}

func testNoName(t *testing.T, h Harness) {
	if h.NoName == "" {
		t.Skip("n/a: every name can exist")
	}
	failSome(t, h, h.direct(t), h.Create(t), ofMessage, func(m *postrider.Message) { m.Topic = h.NoName })
}

func testMissing(t *testing.T, h Harness)   { outage(t, h, h.Missing, "every name is accepted") }
func testForbidden(t *testing.T, h Harness) { outage(t, h, h.Forbidden, "no name is forbidden") }
func testFull(t *testing.T, h Harness)      { outage(t, h, h.Full, "no name can be full") }

// outage publishes to a name that accepts nothing: the failure must not concern a message, must not
// affect other names, and must end with the fault.
func outage(t *testing.T, h Harness, fault Fault, none string) {
	t.Helper()
	if fault == nil {
		t.Skip("n/a: " + none)
	}
	bad, end := fault(t)
	p := h.direct(t)
	failed := failSome(t, h, p, h.Create(t), ofName, func(m *postrider.Message) { m.Topic = bad })
	if end == nil {
		return
	}
	end()
	insist(t, p, failed)
	h.listen(t, bad, "outage").wait(t, failed)
}

// failSome publishes several batches in which some messages are made bad, each with its own key:
// only those may fail, and the same call must confirm the others. It returns the bad messages.
func failSome(
	t *testing.T, h Harness, p postrider.Publisher, name string, want failure, spoil func(*postrider.Message),
) (failed []postrider.Message) {
	t.Helper()
	var good []postrider.Message
	healthy := message(name, "healthy", 0)
	for round, bad := range [][]int{{0}, {10}, {19}, {1, 2, 3, 5, 8, 13}} {
		msgs := make([]postrider.Message, 20)
		for i := range msgs {
			msgs[i] = message(name, string(rune('a'+i)), round)
		}
		for _, i := range bad {
			spoil(&msgs[i])
			expectNames(t, p, &msgs[i], &healthy, want.scope)
		}
		errs := p.Publish(t.Context(), msgs)
		if len(errs) != len(msgs) {
			t.Fatalf("got %d errors for %d messages, %d of them bad", len(errs), len(msgs), len(bad))
		}
		for i, err := range errs {
			if !slices.Contains(bad, i) {
				good = append(good, msgs[i])
				if err != nil {
					t.Errorf("message %d is good and was not confirmed: %v error %v", i, failureOf(err), err)
				}
				continue
			}
			failed = append(failed, msgs[i])
			if err == nil || failureOf(err) != want {
				t.Errorf("bad message %d: %v error %v, want %v", i, failureOf(err), err, want)
			}
		}
	}
	if !t.Failed() {
		h.listen(t, name, "refuse").wait(t, good)
	}
	return failed
}

// expectNames checks that an outage of one name can be distinguished from others by NameOf.
func expectNames(t *testing.T, p postrider.Publisher, bad, good *postrider.Message, scope postrider.Scope) {
	t.Helper()
	namer, ok := p.(broker.Namer)
	if scope == postrider.ScopeName && (!ok || namer.NameOf(bad) == namer.NameOf(good)) {
		t.Error("the publisher has no name of its own for what accepts nothing")
	}
}

// testNames checks that NameOf depends only on where a message goes.
func testNames(t *testing.T, h Harness) {
	p := h.direct(t)
	namer, ok := p.(broker.Namer)
	if !ok {
		t.Skip("n/a: everything goes to one name")
	}
	names := []string{h.Create(t), h.Create(t)}
	if names[0] == names[1] {
		t.Fatalf("Create has made %q twice", names[0])
	}
	sent := make([][]postrider.Message, len(names))
	var all []postrider.Message
	for i, name := range names {
		for n := range 3 {
			m := message(name, string(rune('a'+n)), n)
			m.Headers = map[string]string{"n": m.AggregateID}
			m.TenantID = "tenant " + m.AggregateID
			sent[i], all = append(sent[i], m), append(all, m)
			if got := namer.NameOf(&m); got != namer.NameOf(&sent[i][0]) || !strings.Contains(got, name) {
				t.Errorf("message %d for %q has the name %q, the first one %q", n, name, got, namer.NameOf(&sent[i][0]))
			}
		}
	}
	if a, b := namer.NameOf(&sent[0][0]), namer.NameOf(&sent[1][0]); a == b {
		t.Errorf("two destinations have the one name %q", a)
	}
	own := message("", "k", 0)
	same := own
	same.Topic = own.AggregateType
	if h.NamesByType {
		same.Topic = own.Type
	}
	if got, want := namer.NameOf(&own), namer.NameOf(&same); got != want {
		t.Errorf("without a topic a message has the name %q, want %q", got, want)
	}
	own.AggregateType, own.AggregateID, own.Key = "", "", "k"
	same.Topic = own.Type
	if got, want := namer.NameOf(&own), namer.NameOf(&same); got != want {
		t.Errorf("without a topic and an aggregate a message has the name %q, want %q", got, want)
	}
	publish(t, p, all...)
	for i, name := range names {
		got := h.listen(t, name, "names").wait(t, sent[i])
		if len(got) != len(sent[i]) {
			t.Errorf("%d messages have come to %q, want %d", len(got), name, len(sent[i]))
		}
	}
}

// notTried reports whether a message was not sent because of an earlier one.
func notTried(err error) bool { return errors.Is(err, postrider.ErrNotTried) }
