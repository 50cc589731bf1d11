package api

import (
	"context"
	"strings"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
)

// Journey is the complete history of a message.
type Journey struct {
	Message    Message      `json:"message"`
	InLog      bool         `json:"in_log"`
	Seq        int64        `json:"seq"`
	EnqueuedAt time.Time    `json:"enqueued_at,omitzero"`
	Feeds      []Leg        `json:"feeds"`
	Receipts   []Receipt    `json:"receipts"`
	Records    []AuditEntry `json:"records"`
	Timeline   []Step       `json:"timeline" doc:"all of it, in order of time"`
	TraceID    string       `json:"trace_id,omitempty"`
	Command    string       `json:"command"`
}

// Message is a message as it was enqueued.
type Message struct {
	ID            string            `json:"id"`
	Type          string            `json:"type"`
	AggregateType string            `json:"aggregate_type,omitempty"`
	AggregateID   string            `json:"aggregate_id,omitempty"`
	Key           string            `json:"key,omitempty" doc:"the ordering key"`
	Topic         string            `json:"topic,omitempty"`
	RoutingKey    string            `json:"routing_key,omitempty"`
	Tenant        string            `json:"tenant,omitempty"`
	ContentType   string            `json:"content_type,omitempty"`
	SchemaVersion int               `json:"schema_version,omitempty"`
	SchemaID      string            `json:"schema_id,omitempty"`
	DedupKey      string            `json:"dedup_key,omitempty"`
	OccurredAt    time.Time         `json:"occurred_at,omitzero"`
	DeliverAfter  time.Time         `json:"deliver_after,omitzero"`
	Priority      int               `json:"priority,omitempty"`
	CorrelationID string            `json:"correlation_id,omitempty"`
	CausationID   string            `json:"causation_id,omitempty"`
	BrokerID      string            `json:"broker_id,omitempty"`
	Headers       map[string]string `json:"headers"`
	Payload       Payload           `json:"payload"`
}

// Leg is the state of a message for one feed, or for a consumer that has deferred it.
type Leg struct {
	Feed        string       `json:"feed"`
	Status      feeds.Status `json:"status" enum:"pending,published,scheduled,retry,held,waiting,dead,parked"`
	Blocking    bool         `json:"blocking,omitempty"`
	Attempts    int          `json:"attempts"`
	LastError   string       `json:"last_error,omitempty"`
	DeferredAt  time.Time    `json:"deferred_at,omitzero"`
	TriedAt     time.Time    `json:"tried_at,omitzero"`
	AvailableAt time.Time    `json:"available_at,omitzero"`
	Settled     time.Time    `json:"settled,omitzero"`
}

// Receipt is the record of a consumer that has handled the message.
type Receipt struct {
	Consumer string    `json:"consumer"`
	At       time.Time `json:"at"`
}

// MessageID is the parameter of requests about one message.
type MessageID struct {
	DB
	ID string `path:"id"`
}

func (s *Server) message(ctx context.Context, d *database, in *MessageID) (*Journey, error) {
	log, err := has(d.Log, "log")
	if err != nil {
		return nil, err
	}
	id, err := postrider.ParseID(in.ID)
	if err != nil {
		return nil, invalid("%q is not the ID of a message", in.ID)
	}
	j, err := log.Journey(ctx, id)
	if err != nil {
		return nil, err
	}
	feed := ""
	if len(j.Feeds) > 0 {
		feed = j.Feeds[0].Feed
	}
	out := &Journey{
		Message: s.messageOf(&j.Message, s.mayRead(ctx, d, feed, id)), InLog: j.InLog, Seq: j.Seq, EnqueuedAt: j.EnqueuedAt.UTC(),
		Feeds: make([]Leg, len(j.Feeds)), Receipts: make([]Receipt, len(j.Receipts)), Records: make([]AuditEntry, len(j.Records)),
		TraceID: traceOf(j.Message.Headers), Command: d.command("messages show", id.String()),
	}
	for i := range j.Feeds {
		l := &j.Feeds[i]
		out.Feeds[i] = Leg{
			l.Feed, l.Status, l.Blocking, l.Attempts, s.shown(l.LastError), l.DeferredAt.UTC(), l.TriedAt.UTC(), l.AvailableAt.UTC(), l.Settled.UTC(),
		}
	}
	for i, r := range j.Receipts {
		out.Receipts[i] = Receipt{r.Consumer, r.At.UTC()}
	}
	for i := range j.Records {
		out.Records[i] = s.entryOf(ctx, &j.Records[i])
	}
	out.Timeline = timeline(out)
	return out, nil
}

func (s *Server) messageOf(m *postrider.Message, visible bool) Message {
	out := Message{
		ID: m.ID.String(), Type: m.Type, AggregateType: m.AggregateType, AggregateID: m.AggregateID, Key: m.OrderKey(), Topic: m.Topic,
		RoutingKey: m.RoutingKey, Tenant: m.TenantID, ContentType: m.ContentType, SchemaVersion: m.SchemaVersion, SchemaID: m.SchemaID,
		DedupKey: m.DedupKey, OccurredAt: m.OccurredAt.UTC(), DeliverAfter: m.DeliverAfter.UTC(), Priority: m.Priority,
		CorrelationID: m.CorrelationID, CausationID: m.CausationID, Headers: s.cfg.Redact.Headers(m.Headers, visible),
		Payload: Payload(s.cfg.Redact.Payload(m.ContentType, m.Payload, visible)),
	}
	if id := m.BrokerID(); id != out.ID {
		out.BrokerID = id
	}
	return out
}

// traceOf returns the trace ID of a message from its W3C Trace Context header, or "".
func traceOf(headers map[string]string) string {
	for name, value := range headers {
		if !strings.EqualFold(name, "traceparent") {
			continue
		}
		parts := strings.Split(value, "-")
		if len(parts) >= 4 && len(parts[1]) == 32 && strings.Trim(parts[1], "0123456789abcdef") == "" && strings.Trim(parts[1], "0") != "" {
			return parts[1]
		}
	}
	return ""
}
