package postridertest_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/postridertest"
)

func TestMatch(t *testing.T) {
	type match = postridertest.Match
	m := postrider.UniqueEvent("order.placed", postrider.Aggregate{Type: "order", ID: "42"}, map[string]any{
		"total": 30, "id": json.Number("634866135153775564"), "lines": []any{map[string]any{"sku": "a", "n": 1}, "x"}, "note": nil,
	})
	m.Topic, m.TenantID, m.CorrelationID, m.CausationID = "orders", "acme", "c1", "c0"
	m.Headers = map[string]string{"a": "1", "b": "2"}
	raw := m
	raw.Payload = []byte("\x00\xff")
	for _, c := range []struct {
		name string
		want match
		m    postrider.Message
		why  string
	}{
		{"everything", match{}, m, ""},
		{"all fields", match{Type: "order.placed", AggregateType: "order", AggregateID: "42", OrderKey: "order/42", Topic: "orders",
			TenantID: "acme", DedupKey: "order.placed:order:42:1", CorrelationID: "c1", CausationID: "c0", Headers: map[string]string{"b": "2"}}, m, ""},
		{"type", match{Type: "order.paid"}, m, `Type is "order.placed", want "order.paid"`},
		{"dedup key", match{DedupKey: "x"}, m, `DedupKey is "order.placed:order:42:1", want "x"`},
		{"header", match{Headers: map[string]string{"a": "2"}}, m, `header "a" is "1", want "2"`},
		{"no header", match{Headers: map[string]string{"c": ""}}, m, `header "c" is missing`},
		{"subset", match{Payload: map[string]any{"lines": []any{map[string]any{"n": 1.0}, "x"}, "note": nil}}, m, ""},
		{"struct", match{Payload: struct {
			Total int `json:"total"`
		}{30}}, m, ""},
		{"text", match{Payload: json.RawMessage(`{"total": 3e1}`)}, m, ""},
		{"number", match{Payload: map[string]any{"total": 31}}, m, "Payload.total is 30, want 31"},
		{"large number", match{Payload: json.RawMessage(`{"id": 634866135153775565}`)}, m, "Payload.id is 634866135153775564, want 634866135153775565"},
		{"field", match{Payload: map[string]any{"sum": 30}}, m, "Payload.sum is missing"},
		{"nested", match{Payload: map[string]any{"lines": []any{map[string]any{"sku": "b"}, "x"}}}, m, `Payload.lines[0].sku is "a", want "b"`},
		{"length", match{Payload: map[string]any{"lines": []any{}}}, m, "Payload.lines has 2 elements, want 0"},
		{"kind", match{Payload: map[string]any{"total": map[string]any{}}}, m, "Payload.total is 30, want {}"},
		{"null", match{Payload: map[string]any{"total": nil}}, m, "Payload.total is 30, want null"},
		{"bytes", match{Payload: []byte("\x00\xff")}, raw, ""},
		{"other bytes", match{Payload: []byte("\x00")}, raw, `Payload is "\x00\xff", want "\x00"`},
		{"not JSON", match{Payload: map[string]any{}}, raw, `Payload "\x00\xff" is not JSON: invalid character '\x00' looking for beginning of value`},
		{"own mistake", match{Payload: func() {}}, m, "Payload of the Match cannot be encoded as JSON: json: unsupported type: func()"},
		{"where", match{Where: func(postrider.Message) error { return nil }}, m, ""},
		{"where not", match{Where: func(postrider.Message) error { return errors.New("no") }}, m, "Where: no"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if why := c.want.Mismatch(c.m); why != c.why {
				t.Errorf("got %q, want %q", why, c.why)
			}
		})
	}
}

// FuzzMatchPayload checks that a JSON value contains itself, and no other value of another length
// contains it.
func FuzzMatchPayload(f *testing.F) {
	f.Add(`{"a":[1,{"b":null}],"c":"d"}`, `{"a":[1]}`)
	f.Add(`1e999999999`, `12`)
	f.Add(`"`, `[]`)
	f.Fuzz(func(t *testing.T, a, b string) {
		if !json.Valid([]byte(a)) {
			return
		}
		want := postridertest.Match{Payload: json.RawMessage(a)}
		if why := want.Mismatch(postrider.Message{Payload: []byte(a)}); why != "" {
			t.Errorf("%s does not match itself: %s", a, why)
		}
		_ = want.Mismatch(postrider.Message{Payload: []byte(b)})
		_ = want.String()
	})
}
