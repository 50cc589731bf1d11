package postridertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/postrider/postrider"
)

// Match describes messages. Zero fields match anything, so the zero value matches every message.
type Match struct {
	Type          string
	AggregateType string
	AggregateID   string
	// OrderKey is the key that orders the message, such as "order/42".
	OrderKey      string
	Topic         string
	TenantID      string
	DedupKey      string
	CorrelationID string
	CausationID   string
	// Headers must all be present; the message may have more.
	Headers map[string]string
	// Payload is what the payload must contain. A []byte is compared byte by byte. Anything else is
	// encoded as JSON; then the payload may have additional fields at any depth, but lists must
	// have the same length.
	Payload any
	// Where is called last. It returns an error that says what is wrong with the message.
	Where func(m postrider.Message) error
}

// Mismatch describes how a message differs from w. It is empty if the message matches.
func (w Match) Mismatch(m postrider.Message) string {
	for _, f := range []struct{ name, want, got string }{
		{"Type", w.Type, m.Type},
		{"AggregateType", w.AggregateType, m.AggregateType},
		{"AggregateID", w.AggregateID, m.AggregateID},
		{"OrderKey", w.OrderKey, m.OrderKey()},
		{"Topic", w.Topic, m.Topic},
		{"TenantID", w.TenantID, m.TenantID},
		{"DedupKey", w.DedupKey, m.DedupKey},
		{"CorrelationID", w.CorrelationID, m.CorrelationID},
		{"CausationID", w.CausationID, m.CausationID},
	} {
		if f.want != "" && f.want != f.got {
			return fmt.Sprintf("%s is %q, want %q", f.name, f.got, f.want)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.Headers)) {
		if got, ok := m.Headers[name]; !ok {
			return fmt.Sprintf("header %q is missing", name)
		} else if got != w.Headers[name] {
			return fmt.Sprintf("header %q is %q, want %q", name, got, w.Headers[name])
		}
	}
	if why := w.mismatchPayload(m.Payload); why != "" {
		return why
	}
	if w.Where != nil {
		if err := w.Where(m); err != nil {
			return "Where: " + err.Error()
		}
	}
	return ""
}

func (w Match) mismatchPayload(payload []byte) string {
	if w.Payload == nil {
		return ""
	}
	if raw, ok := w.Payload.([]byte); ok {
		if !bytes.Equal(raw, payload) {
			return fmt.Sprintf("Payload is %s, want %s", short(payload), short(raw))
		}
		return ""
	}
	encoded, err := json.Marshal(w.Payload)
	if err != nil {
		return "Payload of the Match cannot be encoded as JSON: " + err.Error()
	}
	return missing(encoded, payload)
}

// String returns the description as a Go value with the fields that are set.
func (w Match) String() string {
	var fields []string
	for _, f := range []struct{ name, value string }{
		{"Type", w.Type}, {"AggregateType", w.AggregateType}, {"AggregateID", w.AggregateID}, {"OrderKey", w.OrderKey},
		{"Topic", w.Topic}, {"TenantID", w.TenantID}, {"DedupKey", w.DedupKey},
		{"CorrelationID", w.CorrelationID}, {"CausationID", w.CausationID},
	} {
		if f.value != "" {
			fields = append(fields, f.name+": "+strconv.Quote(f.value))
		}
	}
	if len(w.Headers) > 0 {
		fields = append(fields, fmt.Sprintf("Headers: %v", w.Headers))
	}
	if raw, ok := w.Payload.([]byte); ok {
		fields = append(fields, "Payload: "+short(raw))
	} else if w.Payload != nil {
		encoded, err := json.Marshal(w.Payload)
		if err != nil {
			encoded = fmt.Append(nil, w.Payload)
		}
		fields = append(fields, "Payload: "+short(encoded))
	}
	if w.Where != nil {
		fields = append(fields, "Where: …")
	}
	return "Match{" + strings.Join(fields, ", ") + "}"
}
