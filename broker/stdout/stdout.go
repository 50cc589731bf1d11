// Package stdout is a publisher for people and pipes: it writes every message as one line of JSON.
package stdout

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"strings"
	"sync"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
)

var (
	_ postrider.Publisher = (*Publisher)(nil)
	_ broker.OrderKeeper  = (*Publisher)(nil)
)

// Publisher writes messages to an [io.Writer]. It is safe for concurrent use.
type Publisher struct {
	mu   sync.Mutex
	w    io.Writer
	buf  bytes.Buffer
	torn bool // the last write ended within a line
}

// New returns a publisher that writes to w. If w has a method Flush() error, like [bufio.Writer],
// messages are confirmed only after a flush.
func New(w io.Writer) *Publisher { return &Publisher{w: w} }

// envelope is a line without the payload, which is appended to it. Empty fields are omitted.
type envelope struct {
	ID            postrider.ID      `json:"id"`
	Type          string            `json:"type"`
	AggregateType string            `json:"aggregateType,omitempty"`
	AggregateID   string            `json:"aggregateId,omitempty"`
	Key           string            `json:"key,omitempty"`
	Topic         string            `json:"topic,omitempty"`
	RoutingKey    string            `json:"routingKey,omitempty"`
	TenantID      string            `json:"tenantId,omitempty"`
	Headers       map[string]string `json:"headers,omitempty"`
	SchemaVersion int               `json:"schemaVersion,omitempty"`
	SchemaID      string            `json:"schemaId,omitempty"`
	DedupKey      string            `json:"dedupKey,omitempty"`
	OccurredAt    string            `json:"occurredAt,omitempty"`
	Priority      int               `json:"priority,omitempty"`
	CorrelationID string            `json:"correlationId,omitempty"`
	CausationID   string            `json:"causationId,omitempty"`
	ContentType   string            `json:"contentType,omitempty"`
}

// Publish implements [postrider.Publisher]. A payload with a JSON content type and valid JSON is
// written as "payload", byte for byte (compacted if it has line breaks); any other is written as
// "payloadBase64". A message is confirmed when its line has been written; after a failed write it
// is [postrider.ClassUnavailable].
func (p *Publisher) Publish(ctx context.Context, msgs []postrider.Message) []error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.buf.Reset()
	if p.torn {
		p.buf.WriteByte('\n')
	}
	ends := make([]int, len(msgs)) // end of each message's line
	for i := range msgs {
		p.append(&msgs[i])
		ends[i] = p.buf.Len()
	}
	written, err := p.write(ctx)
	if err == nil {
		return nil
	}
	errs := make([]error, len(msgs))
	for i := range msgs {
		if ends[i] > written {
			errs[i] = postrider.Unavailable(err)
		}
	}
	return errs
}

func (p *Publisher) append(m *postrider.Message) {
	line := envelope{
		ID:            m.ID,
		Type:          m.Type,
		AggregateType: m.AggregateType,
		AggregateID:   m.AggregateID,
		Key:           m.Key,
		Topic:         m.Topic,
		RoutingKey:    m.RoutingKey,
		TenantID:      m.TenantID,
		Headers:       m.Headers,
		SchemaVersion: m.SchemaVersion,
		SchemaID:      m.SchemaID,
		DedupKey:      m.DedupKey,
		Priority:      m.Priority,
		CorrelationID: m.CorrelationID,
		CausationID:   m.CausationID,
		ContentType:   m.ContentType,
	}
	if !m.OccurredAt.IsZero() { // a time.Time would fail for years beyond 9999
		line.OccurredAt = m.OccurredAt.Format(time.RFC3339Nano)
	}
	head, _ := json.Marshal(line) // cannot fail for strings and numbers
	p.buf.Write(head[:len(head)-1])
	if isJSON(m) {
		p.buf.WriteString(`,"payload":`)
		if bytes.ContainsAny(m.Payload, "\n\r") {
			_ = json.Compact(&p.buf, m.Payload) // cannot fail: the payload is valid
		} else {
			p.buf.Write(m.Payload)
		}
	} else {
		encoded, _ := json.Marshal(m.Payload) // encodes a []byte in base64
		p.buf.WriteString(`,"payloadBase64":`)
		p.buf.Write(encoded)
	}
	p.buf.WriteString("}\n")
}

// write returns how many bytes of the buffer are known to be written.
func (p *Publisher) write(ctx context.Context) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	n, err := p.w.Write(p.buf.Bytes())
	if err == nil && n < p.buf.Len() {
		err = io.ErrShortWrite
	}
	if err != nil && n > 0 {
		p.torn = p.buf.Bytes()[n-1] != '\n'
	}
	if err != nil {
		return n, fmt.Errorf("stdout: %w", err)
	}
	p.torn = false
	if f, ok := p.w.(interface{ Flush() error }); ok {
		if err := f.Flush(); err != nil {
			return 0, fmt.Errorf("stdout: %w", err)
		}
	}
	return n, nil
}

func isJSON(m *postrider.Message) bool {
	kind, _, err := mime.ParseMediaType(m.ContentType)
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		return false
	}
	return (kind == "application/json" || strings.HasSuffix(kind, "+json")) && json.Valid(m.Payload)
}

// KeepsOrder returns true: lines are written in order, and none after a failed write.
func (p *Publisher) KeepsOrder() bool { return true }

// Close does nothing. The caller owns the writer.
func (p *Publisher) Close() error { return nil }
