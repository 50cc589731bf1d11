package postrider

import (
	"fmt"
	"time"
	"unicode/utf8"
)

// Limits on what a [Message] may hold. They keep a mistake in one producer from becoming a problem of the database,
// the broker and every consumer.
const (
	MaxPayload = 16 << 20 // bytes of Message.Payload
	MaxHeaders = 64 << 10 // bytes of all header names and values together
	MaxText    = 1024     // bytes of any other text field
)

// Message is one thing that a transaction has promised to tell the world.
//
// It is a value: [Event] and [UniqueEvent] copy what they are given, and stores copy what they keep, so that setting a
// field changes the caller's own copy and nothing else. Whoever shares a Message between goroutines must not write into
// its Payload or Headers.
type Message struct {
	// ID is stable from enqueue to consumer. Filled by the constructors; a store fills a zero ID. Consumers set it to that by
	// which they recognise the message, also where another sender has given it an ID of another form, or none: see
	// [github.com/postrider/postrider/wire.Identity].
	ID ID
	// Type says what happened, such as "order.placed". Required.
	Type string
	// AggregateType and AggregateID name the business object. Together they are the default ordering key.
	AggregateType string
	AggregateID   string
	// Key overrides the ordering key. See [Message.OrderKey].
	Key string
	// Topic is where the message is to go, in the words of the routes; empty leaves it to them. Publishers read it as the
	// name of a topic, subject, queue or stream, and consumers set it to the name that they received from.
	Topic string
	// RoutingKey is handed to brokers that route by one.
	RoutingKey string
	// TenantID is the tenant that the message belongs to.
	TenantID string

	// Payload is carried byte for byte; nothing between producer and consumer decodes it.
	Payload []byte
	// ContentType describes Payload. The constructors set it from the kind of payload.
	ContentType string
	// Headers are carried to the broker as they are.
	Headers map[string]string
	// SchemaVersion is the version of the payload's schema. Defaults to 1.
	SchemaVersion int
	// SchemaID names the schema, for instance in a registry.
	SchemaID string

	// DedupKey names the fact that the message states: two messages with one key state the same fact.
	DedupKey string
	// OccurredAt is when the fact happened. Defaults to the time of construction.
	OccurredAt time.Time
	// DeliverAfter is the earliest time of delivery; the zero time means at once.
	DeliverAfter time.Time
	// Priority lets a larger number overtake. Defaults to 0.
	Priority int

	// CorrelationID ties together all messages of one business process.
	CorrelationID string
	// CausationID is the ID of the message or request that caused this one.
	CausationID string

	// WireID is the ID that the broker and its consumers see, such as "outbox-" and the ID. Routes set it on the way out,
	// consumers on the way in: as the sender wrote it, empty if there is none. Stores do not keep it. Empty means ID. See
	// [Message.BrokerID].
	WireID string
	// Repetition tells a deliberate repetition from what was sent before, so that a broker that drops duplicates does not
	// take it for one. Consumers see the same ID. Relays set it for a replay, consumers for a dead letter; stores do not keep
	// it. Letters, digits and hyphens. Empty means that there is none.
	Repetition string

	err error // what a constructor could not do; reported by Validate
}

// OrderKey is the key in whose order the message is delivered: Key when set, otherwise "AggregateType/AggregateID".
// Messages without any of these are in no order, and OrderKey is empty.
func (m *Message) OrderKey() string {
	if m.Key != "" || (m.AggregateType == "" && m.AggregateID == "") {
		return m.Key
	}
	return m.AggregateType + "/" + m.AggregateID
}

// BrokerID is the ID that the broker sees: WireID when set, otherwise ID.
func (m *Message) BrokerID() string {
	if m.WireID != "" {
		return m.WireID
	}
	return m.ID.String()
}

// InvalidError says which field of a message cannot be accepted, and why. It matches [ErrInvalid].
type InvalidError struct {
	Field  string
	Reason string
}

func (e *InvalidError) Error() string {
	return "postrider: invalid message: " + e.Field + " " + e.Reason
}

// Is makes errors.Is(err, ErrInvalid) true.
func (e *InvalidError) Is(target error) bool { return target == ErrInvalid }

// Validate reports the first thing that keeps the message from being enqueued, as an [*InvalidError]. Stores call it;
// producers may, to fail before they open a transaction.
func (m *Message) Validate() error {
	if m.err != nil {
		return m.err
	}
	if m.Type == "" {
		return &InvalidError{"Type", "is empty"}
	}
	for _, f := range []struct{ name, value string }{
		{"Type", m.Type},
		{"AggregateType", m.AggregateType},
		{"AggregateID", m.AggregateID},
		{"Key", m.Key},
		{"Topic", m.Topic},
		{"RoutingKey", m.RoutingKey},
		{"TenantID", m.TenantID},
		{"ContentType", m.ContentType},
		{"SchemaID", m.SchemaID},
		{"DedupKey", m.DedupKey},
		{"CorrelationID", m.CorrelationID},
		{"CausationID", m.CausationID},
	} {
		if len(f.value) > MaxText {
			return &InvalidError{f.name, fmt.Sprintf("has %d bytes, more than %d", len(f.value), MaxText)}
		}
		if err := validText(f.name, f.value); err != nil {
			return err
		}
	}
	if m.SchemaVersion < 0 || m.SchemaVersion > 1<<31-1 {
		return &InvalidError{"SchemaVersion", fmt.Sprintf("is %d, outside 0 to 2147483647", m.SchemaVersion)}
	}
	if len(m.Payload) > MaxPayload {
		return &InvalidError{"Payload", fmt.Sprintf("has %d bytes, more than %d", len(m.Payload), MaxPayload)}
	}
	return m.validHeaders()
}

// ValidateAll reports the first thing that keeps messages from being enqueued together, as an [*InvalidError]: what
// [Message.Validate] says of one of them, an aggregate without its ID, or an ID that two of them have. Outboxes call it.
func ValidateAll(msgs []Message) error {
	for i := range msgs {
		m := &msgs[i]
		if err := m.Validate(); err != nil {
			return err
		}
		if m.AggregateType != "" && m.AggregateID == "" && m.Key == "" {
			return &InvalidError{"AggregateID", "is empty: all messages of the aggregate type would have one ordering key"}
		}
	}
	if len(msgs) < 2 {
		return nil
	}
	seen := make(map[ID]bool, len(msgs))
	for i := range msgs {
		if id := msgs[i].ID; !id.IsZero() {
			if seen[id] {
				return &InvalidError{"ID", id.String() + " is used twice: consumers would take one of the messages for a repetition"}
			}
			seen[id] = true
		}
	}
	return nil
}

func (m *Message) validHeaders() error {
	size := 0
	for name, value := range m.Headers {
		if name == "" {
			return &InvalidError{"Headers", "has an empty name"}
		}
		if err := validText("Headers", name); err != nil {
			return err
		}
		if err := validText("Headers", value); err != nil {
			return err
		}
		size += len(name) + len(value)
	}
	if size > MaxHeaders {
		return &InvalidError{"Headers", fmt.Sprintf("has %d bytes, more than %d", size, MaxHeaders)}
	}
	return nil
}

// validText refuses what databases and brokers refuse or silently change: NUL, and bytes that are not UTF-8.
func validText(field, s string) error {
	for i := range len(s) {
		if s[i] == 0 {
			return &InvalidError{field, "contains a NUL byte"}
		}
	}
	if !utf8.ValidString(s) {
		return &InvalidError{field, "is not valid UTF-8"}
	}
	return nil
}
