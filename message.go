package postrider

import (
	"fmt"
	"time"
	"unicode/utf8"
)

// Limits of a [Message]. They keep one faulty producer from harming the database, the broker and all consumers.
const (
	MaxPayload = 16 << 20 // bytes of Message.Payload
	MaxHeaders = 64 << 10 // bytes of all header names and values together
	MaxText    = 1024     // bytes of any other text field
)

// Message is a fact that a transaction announces to other services.
//
// It is a value: [Event] and [UniqueEvent] copy their arguments, and stores copy what they keep, so setting a field changes
// only the caller's copy. Goroutines that share a Message must not write to its Payload or Headers.
type Message struct {
	// ID identifies the message from enqueue to consumer. The constructors set it; a store sets a zero ID. Consumers set
	// it to the ID by which they recognise the message, even if the sender used another form of ID or none: see
	// [github.com/postrider/postrider/broker/codec.Identity].
	ID ID
	// Type says what happened, such as "order.placed". Required.
	Type string
	// AggregateType and AggregateID name the business object. Together they are the default ordering key.
	AggregateType string
	AggregateID   string
	// Key overrides the ordering key. See [Message.OrderKey].
	Key string
	// Topic names the destination as the routes know it; empty lets the routes decide. Publishers use it as the name of a
	// topic, subject, queue or stream. Consumers set it to the name that they received from.
	Topic string
	// RoutingKey is passed to brokers that route by key.
	RoutingKey string
	// TenantID is the tenant that the message belongs to.
	TenantID string

	// Payload is delivered byte for byte; nothing between producer and consumer decodes it.
	Payload []byte
	// ContentType describes Payload. The constructors set it from the kind of payload.
	ContentType string
	// Headers are passed to the broker unchanged.
	Headers map[string]string
	// SchemaVersion is the version of the payload's schema. Defaults to 1.
	SchemaVersion int
	// SchemaID names the schema, for instance in a registry.
	SchemaID string

	// DedupKey identifies the fact: two messages with the same key state the same fact.
	DedupKey string
	// OccurredAt is when the fact happened. Defaults to the time of construction.
	OccurredAt time.Time
	// DeliverAfter is the earliest time of delivery; the zero time means at once.
	DeliverAfter time.Time
	// Priority: messages with a larger number overtake others. Defaults to 0.
	Priority int

	// CorrelationID groups all messages of one business process.
	CorrelationID string
	// CausationID is the ID of the message or request that caused this one.
	CausationID string

	// WireID is the ID that the broker and its consumers see, such as "outbox-" and the ID. Routes set it when they send;
	// consumers set it to the sender's ID, empty if there is none. Stores do not keep it. Defaults to ID. See
	// [Message.BrokerID].
	WireID string
	// Repetition distinguishes a deliberate repetition, so that a broker that drops duplicates accepts it. Consumers see the
	// same ID. Relays set it for a replay, consumers for a dead letter. Stores do not keep it. Letters, digits and hyphens;
	// empty for none.
	Repetition string

	err error // what a constructor could not do; reported by Validate
}

// OrderKey returns the ordering key: Key if set, otherwise "AggregateType/AggregateID". It is empty for messages without any
// of these, which have no order.
func (m *Message) OrderKey() string {
	if m.Key != "" || (m.AggregateType == "" && m.AggregateID == "") {
		return m.Key
	}
	return m.AggregateType + "/" + m.AggregateID
}

// BrokerID returns the ID that the broker sees: WireID if set, otherwise ID.
func (m *Message) BrokerID() string {
	if m.WireID != "" {
		return m.WireID
	}
	return m.ID.String()
}

// InvalidError names the field of a message that is not acceptable, and the reason. It matches [ErrInvalid].
type InvalidError struct {
	Field  string
	Reason string
}

func (e *InvalidError) Error() string {
	return "postrider: invalid message: " + e.Field + " " + e.Reason
}

// Is makes errors.Is(err, ErrInvalid) true.
func (e *InvalidError) Is(target error) bool { return target == ErrInvalid }

// Validate returns an [*InvalidError] for the first reason that the message cannot be enqueued. Stores call it. Producers may
// call it to fail before they open a transaction.
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

// validText rejects text that databases and brokers reject or silently change: NUL and invalid UTF-8.
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
