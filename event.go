package postrider

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"strconv"
	"strings"
	"time"
)

// Option sets fields of a message during construction, before defaults are derived from them.
type Option func(*Message)

// Aggregate names the business object that an event is about, such as the order 42. All events of an aggregate have one
// ordering key. The zero value stands for no aggregate.
type Aggregate struct {
	Type string // such as "order"
	ID   string
}

// Event returns a message about one aggregate with all defaults except the dedup key.
//
// A []byte payload is used as is, with content type application/octet-stream. A [json.RawMessage] is used as is, as
// application/json, and must be valid JSON. Any other payload is encoded as JSON. If the payload cannot be encoded,
// [Message.Validate], and therefore Enqueue, returns the error.
func Event(eventType string, about Aggregate, payload any, opts ...Option) Message {
	m := Message{
		ID:            NewID(),
		Type:          eventType,
		AggregateType: about.Type,
		AggregateID:   about.ID,
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

// UniqueEvent is like [Event] and sets the dedup key, unless an option does, to
// "type:aggregateType:aggregateID:schemaVersion", followed by ":tenantID" if there is a tenant. Use it for facts that happen
// once per aggregate. Colons and percent signs in the parts are percent-encoded. A key that is too long is hashed.
func UniqueEvent(eventType string, about Aggregate, payload any, opts ...Option) Message {
	m := Event(eventType, about, payload, opts...)
	if m.DedupKey == "" {
		m.DedupKey = uniqueKey(&m)
	}
	return m
}

// partEscaper escapes separators inside the parts of a key.
var partEscaper = strings.NewReplacer("%", "%25", ":", "%3A")

func uniqueKey(m *Message) string {
	parts := []string{m.Type, m.AggregateType, m.AggregateID, strconv.Itoa(m.SchemaVersion), m.TenantID}
	if m.TenantID == "" {
		parts = parts[:4]
	}
	for i := range parts {
		parts[i] = partEscaper.Replace(parts[i])
	}
	key := strings.Join(parts, ":")
	if len(key) > MaxText {
		sum := sha256.Sum256([]byte(key))
		key = "sha256:" + hex.EncodeToString(sum[:])
	}
	return key
}

func (m *Message) setPayload(payload any) {
	switch p := payload.(type) {
	case []byte:
		m.Payload, m.ContentType = bytes.Clone(p), "application/octet-stream"
	case json.RawMessage:
		if !json.Valid(p) {
			m.err = &InvalidError{"Payload", "is a json.RawMessage that is not JSON"}
		}
		m.Payload, m.ContentType = bytes.Clone(p), "application/json"
	default:
		encoded, err := json.Marshal(payload)
		if err != nil {
			m.err = &InvalidError{"Payload", "cannot be encoded as JSON: " + err.Error()}
		}
		m.Payload, m.ContentType = encoded, "application/json"
	}
}
