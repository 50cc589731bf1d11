package brokertest

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/codec"
)

func testBytes(t *testing.T, h Harness) {
	name := h.Create(t)
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	var msgs []postrider.Message
	for _, payload := range [][]byte{
		{}, {0}, []byte(" {\"n\": 634866135153775564 }\n"), every, []byte("\xff\xfe\xfd"), bytes.Repeat(every, 1<<8),
	} {
		m := message(name, "bytes", 0)
		m.Payload = payload
		msgs = append(msgs, m)
	}
	publish(t, h.direct(t), msgs...)
	got := h.listen(t, name, "bytes").wait(t, msgs)
	for _, m := range msgs {
		if arrived := find(t, got, m); !bytes.Equal(arrived.Payload, m.Payload) {
			t.Errorf("sent %d bytes %.40q, got %d bytes %.40q", len(m.Payload), m.Payload, len(arrived.Payload), arrived.Payload)
		}
	}
}

func testHeaders(t *testing.T, h Harness) {
	name := h.Create(t)
	m := message(name, "headers", 0)
	m.Headers = map[string]string{
		"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		"X-Mixed":     "Value with blanks, commas; and \"quotes\" = 100%",
		"umlaut":      "schöne Grüße, 世界",
	}
	publish(t, h.direct(t), m)
	got := find(t, h.listen(t, name, "headers").wait(t, []postrider.Message{m}), m)
	for header, want := range m.Headers {
		if value, ok := lookup(got.Headers, header, h.FoldsHeaderNames); !ok || value != want {
			t.Errorf("header %s: got %q, want %q (all: %q)", header, value, want, got.Headers)
		}
	}
}

func lookup(headers map[string]string, name string, fold bool) (string, bool) {
	if value, ok := headers[name]; ok || !fold {
		return value, ok
	}
	for _, other := range slices.Sorted(maps.Keys(headers)) {
		if strings.EqualFold(other, name) {
			return headers[other], true
		}
	}
	return "", false
}

// testAwkwardHeaders checks that a header arrives unchanged or is refused, but never silently
// changed.
func testAwkwardHeaders(t *testing.T, h Harness) {
	name := h.Create(t)
	p := h.direct(t)
	var accepted []postrider.Message
	for _, value := range []string{"two\nlines", "carriage\rreturn", " blank before", "blank after ", "\ttab", ""} {
		m := message(name, "awkward", 0)
		m.Headers = map[string]string{"awkward": value}
		ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
		errs := p.Publish(ctx, []postrider.Message{m})
		cancel()
		switch {
		case len(errs) == 0 || errs[0] == nil:
			accepted = append(accepted, m)
		case !h.OneLineHeaders || postrider.ClassOf(errs[0]) != postrider.ClassPermanent:
			t.Errorf("header %q: %v error %v", value, postrider.ClassOf(errs[0]), errs[0])
		}
	}
	got := h.listen(t, name, "awkward").wait(t, accepted)
	for _, m := range accepted {
		want := m.Headers["awkward"]
		if value, ok := lookup(find(t, got, m).Headers, "awkward", h.FoldsHeaderNames); value != want || !ok && want != "" {
			t.Errorf("header %q was accepted and arrived as %q", want, value)
		}
	}
}

func testFields(t *testing.T, h Harness) {
	name := h.Create(t)
	full := postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: "4711"}, map[string]int{"n": 1}, func(m *postrider.Message) {
		m.Topic = name
		m.TenantID = "tenant ä"
		m.SchemaVersion = 3
		m.SchemaID = "https://example.com/order.json"
		m.DedupKey = "order:4711"
		m.CorrelationID = "corr-1"
		m.CausationID = "cause-1"
		m.OccurredAt = time.Date(2026, 2, 3, 4, 5, 6, 789_000_000, time.UTC)
	})
	keyed := message(name, "", 0)
	keyed.AggregateType, keyed.Key = "", "a key of its own"
	keyless := message(name, "", 0)
	keyless.AggregateType = ""
	msgs := []postrider.Message{full, keyed, keyless}
	publish(t, h.direct(t), msgs...)
	got := h.listen(t, name, "fields").wait(t, msgs)
	for _, m := range msgs {
		arrived := find(t, got, m)
		for _, f := range []struct{ name, got, want string }{
			{"Type", arrived.Type, m.Type},
			{"AggregateType", arrived.AggregateType, m.AggregateType},
			{"AggregateID", arrived.AggregateID, m.AggregateID},
			{"OrderKey", arrived.OrderKey(), m.OrderKey()},
			{"Topic", arrived.Topic, m.Topic},
			{"TenantID", arrived.TenantID, m.TenantID},
			{"ContentType", arrived.ContentType, m.ContentType},
			{"SchemaID", arrived.SchemaID, m.SchemaID},
			{"DedupKey", arrived.DedupKey, m.DedupKey},
			{"CorrelationID", arrived.CorrelationID, m.CorrelationID},
			{"CausationID", arrived.CausationID, m.CausationID},
			{"BrokerID", arrived.BrokerID(), m.BrokerID()},
		} {
			if f.got != f.want {
				t.Errorf("%s: got %q, want %q", f.name, f.got, f.want)
			}
		}
		if arrived.SchemaVersion != m.SchemaVersion || !arrived.OccurredAt.Equal(m.OccurredAt) {
			t.Errorf("got version %d of %v, want %d of %v", arrived.SchemaVersion, arrived.OccurredAt, m.SchemaVersion, m.OccurredAt)
		}
	}
}

func testIDs(t *testing.T, h Harness) {
	name := h.Create(t)
	p := h.direct(t)
	m := message(name, "ids", 0)
	m.WireID = "verify_" + m.ID.String()
	publish(t, p, m)
	publish(t, p, m) // a duplicate is not an error
	last := message(name, "ids", 1)
	publish(t, p, last)

	if h.SignedIDs {
		m.ID = codec.Identity("", m.WireID)
	}
	got := h.listen(t, name, "ids").wait(t, []postrider.Message{m, last})
	copies := 0
	for _, arrived := range got {
		if arrived.ID == m.ID {
			copies++
			if arrived.BrokerID() != m.WireID {
				t.Errorf("the broker's ID is %q, want %q", arrived.BrokerID(), m.WireID)
			}
		}
	}
	if h.Dedup && copies != 1 {
		t.Errorf("the message arrived %d times, want once", copies)
	}
}

// testWithoutIDs checks that equal messages without IDs are distinguished, and that each keeps its
// identity when it is redelivered.
func testWithoutIDs(t *testing.T, h Harness) {
	if h.Plain == nil {
		t.Skip("n/a: every message has an ID")
	}
	const count = 5
	name := h.Create(t)
	for range count - 2 {
		h.Plain(t, name, "alike")
	}
	h.Plain(t, name, "alike", "alike") // together, as a batching client sends them
	var mu sync.Mutex
	came := make(map[postrider.ID]int)
	note := func(m postrider.Message) int {
		if string(m.Payload) != "alike" || m.WireID != "" {
			t.Errorf("got %q with the ID %q", m.Payload, m.WireID)
		}
		mu.Lock()
		defer mu.Unlock()
		came[m.ID]++
		return len(came)
	}
	if h.NoPlace {
		l := h.listen(t, name, "plain")
		for n := 0; n < count; {
			msgs, more := l.received()
			if n = len(msgs); n < count {
				<-more
				continue
			}
			for _, m := range msgs {
				if note(m); !m.ID.IsZero() {
					t.Errorf("it is known as %s", m.ID)
				}
			}
		}
		return
	}
	// A first consumer fails to handle each message, so that it is redelivered.
	all := make(chan struct{})
	once := sync.OnceFunc(func() { close(all) })
	first := h.listenWith(t, name, "plain", func(_ context.Context, m postrider.Message) error {
		if note(m) == count {
			once()
		}
		return errors.New("not done")
	})
	select {
	case <-all:
	case <-time.After(waitLimit):
		t.Fatalf("%d of %d messages are told apart", len(came), count)
	}
	first.stop()
	l := h.listen(t, name, "plain")
	for again := make(map[postrider.ID]bool); len(again) < count; {
		msgs, more := l.received()
		for _, m := range msgs {
			again[m.ID] = true
			mu.Lock()
			if came[m.ID] == 0 || m.ID.IsZero() {
				t.Errorf("%s was not there before", m.ID)
			}
			mu.Unlock()
		}
		if len(again) < count {
			select {
			case <-more:
			case <-time.After(waitLimit):
				t.Fatalf("%d of %d messages came again", len(again), count)
			}
		}
	}
}

func testNothingToPublish(t *testing.T, h Harness) {
	if errs := h.direct(t).Publish(t.Context(), nil); len(errs) != 0 {
		t.Errorf("got %v", errs)
	}
}

func testDoesNotKeepMessages(t *testing.T, h Harness) {
	name := h.Create(t)
	msgs := []postrider.Message{message(name, "k", 7)}
	msgs[0].Headers = map[string]string{"h": "v"}
	publish(t, h.direct(t), msgs...)
	if msgs[0].Topic != name || string(msgs[0].Payload) != "7" || msgs[0].WireID != "" || len(msgs[0].Headers) != 1 {
		t.Errorf("Publish has changed the message: %+v", msgs[0])
	}
	sent := msgs[0]
	msgs[0].Payload[0] = 'X' // the caller may reuse it
	sent.Payload = []byte("7")
	got := find(t, h.listen(t, name, "keep").wait(t, []postrider.Message{sent}), sent)
	if string(got.Payload) != "7" {
		t.Errorf("got %q: the publisher still used the message after it had returned", got.Payload)
	}
}
