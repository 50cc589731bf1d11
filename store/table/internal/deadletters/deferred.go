package deadletters

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// Lock keeps others from changing what a consumer has deferred, until the transaction ends.
func Lock(ctx context.Context, tx *sql.Tx, own sqltext.Tables, number int64) error {
	return own.Stmt("SELECT n FROM {consumers} WHERE n = ").Number(number).SQL(" FOR UPDATE").Row(ctx, tx).Scan(&number)
}

// storedMessage is a message as it is kept, without its payload.
type storedMessage struct {
	Type          string            `json:"type"`
	AggregateType string            `json:"aggregate_type,omitempty"`
	AggregateID   string            `json:"aggregate_id,omitempty"`
	Key           string            `json:"key,omitempty"`
	Topic         string            `json:"topic,omitempty"`
	RoutingKey    string            `json:"routing_key,omitempty"`
	TenantID      string            `json:"tenant_id,omitempty"`
	ContentType   string            `json:"content_type,omitempty"`
	Headers       map[string]string `json:"headers,omitempty"`
	SchemaVersion int               `json:"schema_version"`
	SchemaID      string            `json:"schema_id,omitempty"`
	DedupKey      string            `json:"dedup_key,omitempty"`
	OccurredAt    time.Time         `json:"occurred_at,omitzero"`
	Priority      int               `json:"priority,omitempty"`
	CorrelationID string            `json:"correlation_id,omitempty"`
	CausationID   string            `json:"causation_id,omitempty"`
}

// Encode returns everything of a message but its ID and payload, as it is stored.
func Encode(m *postrider.Message) ([]byte, error) {
	a := storedMessage{
		legible(m.Type), legible(m.AggregateType), legible(m.AggregateID), legible(m.Key), legible(m.Topic), legible(m.RoutingKey),
		legible(m.TenantID), legible(m.ContentType), nil, max(m.SchemaVersion, 1), legible(m.SchemaID), legible(m.DedupKey), m.OccurredAt.UTC(),
		m.Priority, legible(m.CorrelationID), legible(m.CausationID),
	}
	for name, value := range m.Headers {
		if a.Headers == nil {
			a.Headers = make(map[string]string, len(m.Headers))
		}
		a.Headers[legible(name)] = legible(value)
	}
	return json.Marshal(a)
}

func decodeMessage(doc []byte, m *postrider.Message) error {
	var a storedMessage
	if err := json.Unmarshal(doc, &a); err != nil {
		return err
	}
	m.Type, m.AggregateType, m.AggregateID, m.Key, m.Topic = a.Type, a.AggregateType, a.AggregateID, a.Key, a.Topic
	m.RoutingKey, m.TenantID, m.ContentType, m.Headers, m.SchemaVersion = a.RoutingKey, a.TenantID, a.ContentType, a.Headers, a.SchemaVersion
	m.SchemaID, m.DedupKey, m.OccurredAt, m.Priority = a.SchemaID, a.DedupKey, a.OccurredAt, a.Priority
	m.CorrelationID, m.CausationID = a.CorrelationID, a.CausationID
	return nil
}

// Promote makes the first message of a key go, now that what it waited for is gone. The consumer is locked.
func Promote(ctx context.Context, tx *sql.Tx, own sqltext.Tables, consumer int64, hash string) error {
	var seq int64
	var status string
	err := own.Stmt("SELECT seq, status FROM {inbox_deferred} WHERE consumer = ").Number(consumer).SQL(" AND blocking = 1 AND key_hash = ").Word(hash).
		SQL(" ORDER BY seq LIMIT 1").Row(ctx, tx).Scan(&seq, &status)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err == nil && status == string(feeds.StatusWaiting) {
		_, err = own.Stmt(Again).Number(seq).Exec(ctx, tx)
	}
	return err
}

// Again has a message tried at once, with all its attempts ahead of it.
const Again = "UPDATE {inbox_deferred} SET status = 'retry', attempts = 0, available_at = {now} WHERE seq = "

// Fields are what a message that is deferred is read from; c is its consumer.
func Fields(payload bool) string {
	body := "''"
	if payload {
		body = "a.payload"
	}
	return "a.seq, c.name, a.message_id, a.status, a.blocking, a.attempts, a.last_error, " + sqltext.MySQL.Micros("a.deferred_at") + ", " +
		sqltext.MySQL.Micros("a.tried_at") + ", " + sqltext.MySQL.Micros("a.available_at") + ", a.message, " + body
}

// Scan reads one row of a query for deferred messages.
func Scan(scan func(...any) error) (d feeds.Deferred, err error) {
	var name, id, doc []byte
	var deferred, tried, available sql.NullInt64
	err = scan(&d.Seq, &name, &id, &d.Status, &d.Blocking, &d.Attempts, &d.LastError, &deferred, &tried, &available, &doc, &d.Payload)
	if err != nil {
		return d, err
	}
	d.Feed, d.ID = inbox.Feed(string(name)), postrider.ID(id)
	d.DeferredAt, d.TriedAt, d.AvailableAt = sqltext.Moment(deferred), sqltext.Moment(tried), sqltext.Moment(available)
	d.EnqueuedAt = d.DeferredAt
	return d, decodeMessage(doc, &d.Message)
}

// Joined returns the numbers as a list in SQL.
func Joined(numbers []int64) string {
	texts := make([]string, len(numbers))
	for i, n := range numbers {
		texts[i] = strconv.FormatInt(n, 10)
	}
	return strings.Join(texts, ",")
}

// KeyHash stands for an ordering key; empty if there is none.
func KeyHash(key string) string {
	if key == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(legible(key)))
	return string(sum[:])
}

// legible makes a text of what came from a broker and may hold anything.
func legible(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }
