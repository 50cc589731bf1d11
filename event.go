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

// Option changes a message while it is being constructed, before defaults are derived from its fields.
type Option func(*Message)

// Event makes a message about one aggregate and fills every default but the dedup key.
//
// A []byte payload is carried as it is, with content type application/octet-stream; a [json.RawMessage] is carried as
// it is, as application/json, if it is JSON; anything else is encoded as JSON. A payload that is none is reported by
// [Message.Validate], and so by Enqueue: nothing can enqueue the message.
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
// "type:aggregateType:aggregateID:schemaVersion", with ":tenantID" behind it if there is a tenant: such a thing happens to the
// aggregate once. A colon or percent sign in a part is percent-encoded. A key that would be too long is a hash of it.
func UniqueEvent(eventType, aggregateType, aggregateID string, payload any, opts ...Option) Message {
	m := Event(eventType, aggregateType, aggregateID, payload, opts...)
	if m.DedupKey == "" {
		m.DedupKey = uniqueKey(&m)
	}
	return m
}

// partEscaper keeps the parts of a key apart.
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
