package postrider_test

import (
	"errors"
	"log/slog"
	"math"
	"strings"
	"testing"

	"github.com/postrider/postrider"
)

func TestOrderKey(t *testing.T) {
	for _, c := range []struct {
		m    postrider.Message
		want string
	}{
		{postrider.Message{}, ""},
		{postrider.Message{Type: "t", Topic: "x", TenantID: "y"}, ""},
		{postrider.Message{AggregateType: "order", AggregateID: "42"}, "order/42"},
		{postrider.Message{AggregateType: "order"}, "order/"},
		{postrider.Message{AggregateID: "42"}, "/42"},
		{postrider.Message{AggregateType: "order", AggregateID: "42", Key: "customer"}, "customer"},
		{postrider.Message{Key: "customer"}, "customer"},
	} {
		if got := c.m.OrderKey(); got != c.want {
			t.Errorf("%+v: got %q, want %q", c.m, got, c.want)
		}
	}
}

func TestValidate(t *testing.T) {
	texts := map[string]func(*postrider.Message, string){
		"Type":          func(m *postrider.Message, s string) { m.Type = s },
		"AggregateType": func(m *postrider.Message, s string) { m.AggregateType = s },
		"AggregateID":   func(m *postrider.Message, s string) { m.AggregateID = s },
		"Key":           func(m *postrider.Message, s string) { m.Key = s },
		"Topic":         func(m *postrider.Message, s string) { m.Topic = s },
		"RoutingKey":    func(m *postrider.Message, s string) { m.RoutingKey = s },
		"TenantID":      func(m *postrider.Message, s string) { m.TenantID = s },
		"ContentType":   func(m *postrider.Message, s string) { m.ContentType = s },
		"SchemaID":      func(m *postrider.Message, s string) { m.SchemaID = s },
		"DedupKey":      func(m *postrider.Message, s string) { m.DedupKey = s },
		"CorrelationID": func(m *postrider.Message, s string) { m.CorrelationID = s },
		"CausationID":   func(m *postrider.Message, s string) { m.CausationID = s },
	}
	for field, set := range texts {
		for _, c := range []struct {
			name, value string
			ok          bool
		}{
			{"NUL", "a\x00b", false},
			{"bad UTF-8", "a\xffb", false},
			{"a lone surrogate", "\xed\xa0\x80", false},
			{"the longest text", strings.Repeat("ü", postrider.MaxText/2), true},
			{"one byte too much", strings.Repeat("a", postrider.MaxText+1), false},
			{"any other text", "日本語 '\"\\\x01\u2028🚚", true},
		} {
			m := postrider.Message{Type: "t"}
			set(&m, c.value)
			checkValid(t, field+" with "+c.name, m, field, c.ok)
		}
	}

	headers := func(pairs ...string) postrider.Message {
		m := postrider.Message{Type: "t", Headers: make(map[string]string)}
		for i := 0; i < len(pairs); i += 2 {
			m.Headers[pairs[i]] = pairs[i+1]
		}
		return m
	}
	for _, c := range []struct {
		name  string
		m     postrider.Message
		field string
		ok    bool
	}{
		{"the least", postrider.Message{Type: "t"}, "", true},
		{"no type", postrider.Message{}, "Type", false},
		{"largest payload", postrider.Message{Type: "t", Payload: make([]byte, postrider.MaxPayload)}, "", true},
		{"larger payload", postrider.Message{Type: "t", Payload: make([]byte, postrider.MaxPayload+1)}, "Payload", false},
		{"largest version", postrider.Message{Type: "t", SchemaVersion: math.MaxInt32}, "", true},
		{"negative version", postrider.Message{Type: "t", SchemaVersion: -1}, "SchemaVersion", false},
		{"header", headers("ключ", "значение", "empty", ""), "", true},
		{"header without name", headers("", "v"), "Headers", false},
		{"header name with NUL", headers("a\x00", "v"), "Headers", false},
		{"header value with NUL", headers("a", "\x00"), "Headers", false},
		{"header name with bad UTF-8", headers("\xff", "v"), "Headers", false},
		{"header value with bad UTF-8", headers("a", "\xff"), "Headers", false},
		{"largest headers", headers("a", "b", "c", strings.Repeat("d", postrider.MaxHeaders-3)), "", true},
		{"larger headers", headers("a", "b", "c", strings.Repeat("d", postrider.MaxHeaders-2)), "Headers", false},
	} {
		checkValid(t, c.name, c.m, c.field, c.ok)
	}
}

func checkValid(t *testing.T, name string, m postrider.Message, field string, ok bool) {
	t.Helper()
	err := m.Validate()
	if ok {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return
	}
	var invalid *postrider.InvalidError
	if !errors.As(err, &invalid) || invalid.Field != field || !errors.Is(err, postrider.ErrInvalid) {
		t.Errorf("%s: got %v, want an InvalidError about %s", name, err, field)
	} else if !strings.Contains(err.Error(), field) {
		t.Errorf("%s: %q does not name the field", name, err)
	}
}

func TestLogOfMessage(t *testing.T) {
	m := postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: "17"}, "planted-payload")
	m.DedupKey, m.CorrelationID = "once", "c-1"
	m.Headers = map[string]string{"authorization": "planted-header"}
	var line strings.Builder
	slog.New(slog.NewTextHandler(&line, nil)).Info("x", "", m, "message", m)
	for _, want := range []string{" type=order.placed", " key=order/17", " dedup_key=once", " correlation_id=c-1", "message.aggregate_id=17", m.ID.String()} {
		if !strings.Contains(line.String(), want) {
			t.Errorf("%s is not in %s", want, &line)
		}
	}
	if strings.Contains(line.String(), "planted") {
		t.Errorf("a secret is in %s", &line)
	}
}
