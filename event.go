package postrider

import (
	"bytes"
	"encoding/json"
	"maps"
	"strconv"
	"time"
)

// Option changes a message while it is being constructed, before defaults are derived from its fields.
type Option func(*Message)

// Event makes a message about one aggregate and fills every default but the dedup key.
//
// A []byte payload is carried as it is, with content type application/octet-stream; a [json.RawMessage] is carried as
// it is, as application/json; anything else is encoded as JSON. A payload that cannot be encoded is reported by
// [Message.Validate], and so by Enqueue.
func Event(eventType, aggregateType, aggregateID string, payload any, opts ...Option) Message {
	m := Message{
		ID:            NewID(),
		Type:          eventType,
		AggregateType: aggregateType,
		AggregateID:   aggregateID,
		SchemaVersion: 1,
		OccurredAt:    time.Now(),
	}
	m.setPayload(payload)
	for _, opt := range opts {
		opt(&m)
	}
	m.Headers = maps.Clone(m.Headers)
	return m
}

// UniqueEvent makes a message as [Event] does and gives it, unless an option has set another, the dedup key
// "type:aggregateID:schemaVersion": such a thing happens to the aggregate once.
func UniqueEvent(eventType, aggregateType, aggregateID string, payload any, opts ...Option) Message {
	m := Event(eventType, aggregateType, aggregateID, payload, opts...)
	if m.DedupKey == "" {
		m.DedupKey = m.Type + ":" + m.AggregateID + ":" + strconv.Itoa(m.SchemaVersion)
	}
	return m
}

func (m *Message) setPayload(payload any) {
	switch p := payload.(type) {
	case []byte:
		m.Payload, m.ContentType = bytes.Clone(p), "application/octet-stream"
	case json.RawMessage:
		m.Payload, m.ContentType = bytes.Clone(p), "application/json"
	default:
		encoded, err := json.Marshal(payload)
		if err != nil {
			m.err = &InvalidError{"Payload", "cannot be encoded as JSON: " + err.Error()}
		}
		m.Payload, m.ContentType = encoded, "application/json"
	}
}
