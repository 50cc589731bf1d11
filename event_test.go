package postrider_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider"
)

func TestEventDefaults(t *testing.T) {
	before := time.Now()
	m := postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: "42"}, map[string]int{"items": 3})
	if m.ID.IsZero() || m.Type != "order.placed" || m.AggregateType != "order" || m.AggregateID != "42" {
		t.Errorf("got %+v", m)
	}
	if m.SchemaVersion != 1 || m.DedupKey != "" || m.Priority != 0 || !m.DeliverAfter.IsZero() || m.Headers != nil {
		t.Errorf("the defaults are wrong: %+v", m)
	}
	if m.OccurredAt.Before(before) || m.OccurredAt.After(time.Now()) {
		t.Errorf("OccurredAt is %v, want now", m.OccurredAt)
	}
	if err := m.Validate(); err != nil {
		t.Error(err)
	}
	if again := postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: "42"}, nil); again.ID == m.ID {
		t.Error("two events have one ID")
	}
}

func TestEventPayload(t *testing.T) {
	for name, c := range map[string]struct {
		payload       any
		want, content string
	}{
		"bytes":  {[]byte("a\x00\xff"), "a\x00\xff", "application/octet-stream"},
		"raw":    {json.RawMessage(`{ "a" : 1 }`), `{ "a" : 1 }`, "application/json"},
		"struct": {struct{ A int }{1}, `{"A":1}`, "application/json"},
		"string": {"text", `"text"`, "application/json"},
		"nil":    {nil, "null", "application/json"},
	} {
		m := postrider.Event("t", postrider.Aggregate{}, c.payload)
		if string(m.Payload) != c.want || m.ContentType != c.content {
			t.Errorf("%s: got %q as %s, want %q as %s", name, m.Payload, m.ContentType, c.want, c.content)
		}
	}
}

func TestEventCopies(t *testing.T) {
	payload, raw := []byte("abc"), json.RawMessage(`"abc"`)
	headers := map[string]string{"h": "v"}
	withHeaders := func(m *postrider.Message) { m.Headers = headers }
	a := postrider.Event("t", postrider.Aggregate{}, payload, withHeaders)
	b := postrider.UniqueEvent("t", postrider.Aggregate{}, raw, withHeaders)
	payload[0], raw[1], headers["h"] = 'X', 'X', "spoilt"
	a.Headers["only"] = "a"
	if string(a.Payload) != "abc" || a.Headers["h"] != "v" || string(b.Payload) != `"abc"` || b.Headers["h"] != "v" {
		t.Errorf("got %q %v and %q %v", a.Payload, a.Headers, b.Payload, b.Headers)
	}
	if len(headers) != 1 || len(b.Headers) != 1 {
		t.Errorf("a header of one message shows in another: %v, %v", headers, b.Headers)
	}
}

func TestEventReportsPayloadThatCannotBeEncoded(t *testing.T) {
	for name, m := range map[string]postrider.Message{
		"Event":       postrider.Event("t", postrider.Aggregate{}, func() {}),
		"UniqueEvent": postrider.UniqueEvent("t", postrider.Aggregate{}, make(chan int)),
	} {
		var invalid *postrider.InvalidError
		if err := m.Validate(); !errors.As(err, &invalid) || invalid.Field != "Payload" {
			t.Errorf("%s: got %v, want an InvalidError about Payload", name, err)
		}
	}
}

func TestUniqueEventKey(t *testing.T) {
	version := func(v int) postrider.Option { return func(m *postrider.Message) { m.SchemaVersion = v } }
	for want, m := range map[string]postrider.Message{
		"order.placed:order:42:1": postrider.UniqueEvent("order.placed", postrider.Aggregate{Type: "order", ID: "42"}, nil),
		"order.placed:order:42:3": postrider.UniqueEvent("order.placed", postrider.Aggregate{Type: "order", ID: "42"}, nil, version(3)),
		"enrollment:42": postrider.UniqueEvent("enrolled", postrider.Aggregate{Type: "student", ID: "7"}, nil, func(m *postrider.Message) {
			m.DedupKey = "enrollment:42"
		}),
	} {
		if m.DedupKey != want {
			t.Errorf("got the dedup key %q, want %q", m.DedupKey, want)
		}
		if m.ID.IsZero() || m.OccurredAt.IsZero() {
			t.Errorf("%s: the defaults of Event are missing", want)
		}
	}
}

// TestUniqueEventKeysDiffer: facts about different things never have the same key, wherever the
// parts of the key are separated.
func TestUniqueEventKeysDiffer(t *testing.T) {
	seen := make(map[string]string)
	parts := []string{"", "a", "b", ":", "a:", ":a", "%", "%3A", "1", "a:b", strings.Repeat("x", postrider.MaxText)}
	for _, eventType := range parts {
		for _, kind := range parts {
			for _, id := range parts {
				for _, tenant := range parts {
					m := postrider.UniqueEvent(eventType, postrider.Aggregate{Type: kind, ID: id}, nil, func(m *postrider.Message) { m.TenantID = tenant })
					what := fmt.Sprintf("%.9q %.9q %.9q %.9q", eventType, kind, id, tenant)
					if other, ok := seen[m.DedupKey]; ok {
						t.Fatalf("%s and %s have the key %q", what, other, m.DedupKey)
					}
					seen[m.DedupKey] = what
					if len(m.DedupKey) > postrider.MaxText {
						t.Fatalf("%s: the key has %d bytes", what, len(m.DedupKey))
					}
				}
			}
		}
	}
}

func TestEventRefusesRawMessageThatIsNotJSON(t *testing.T) {
	for _, payload := range []string{"", "{", "{}{}", "plain text", "\xff"} {
		m := postrider.Event("t", postrider.Aggregate{}, json.RawMessage(payload))
		var invalid *postrider.InvalidError
		if err := m.Validate(); !errors.As(err, &invalid) || invalid.Field != "Payload" || payload != "" && strings.Contains(err.Error(), payload) {
			t.Errorf("%q: got %v, want an InvalidError about Payload that does not show it", payload, err)
		}
	}
}
