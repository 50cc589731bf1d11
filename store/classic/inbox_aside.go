package classic

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/store/feeds"
)

// lockConsumer keeps others from changing what a consumer has deferred, until the transaction ends.
func (c *Config) lockConsumer(ctx context.Context, tx *sql.Tx, number int64) error {
	return c.stmt("SELECT n FROM {consumers} WHERE n = ").number(number).sql(" FOR UPDATE").row(ctx, tx).Scan(&number)
}

// asideMessage is a message as it is kept, without its payload.
type asideMessage struct {
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

func encodeAside(m *postrider.Message) ([]byte, error) {
	a := asideMessage{
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

func decodeAside(doc []byte, m *postrider.Message) error {
	var a asideMessage
	if err := json.Unmarshal(doc, &a); err != nil {
		return err
	}
	m.Type, m.AggregateType, m.AggregateID, m.Key, m.Topic = a.Type, a.AggregateType, a.AggregateID, a.Key, a.Topic
	m.RoutingKey, m.TenantID, m.ContentType, m.Headers, m.SchemaVersion = a.RoutingKey, a.TenantID, a.ContentType, a.Headers, a.SchemaVersion
	m.SchemaID, m.DedupKey, m.OccurredAt, m.Priority = a.SchemaID, a.DedupKey, a.OccurredAt, a.Priority
	m.CorrelationID, m.CausationID = a.CorrelationID, a.CausationID
	return nil
}

// setAside keeps a message that this transaction has recorded. The consumer is locked. It returns errFreed if the message was to wait
// and there is nothing any more that it would wait for.
func (s *inboxStore) setAside(ctx context.Context, tx *sql.Tx, c inboxTerms, m inboxPlace, back inbox.Deferral) error {
	var one int
	blocked := false
	if m.hash != "" {
		err := s.cfg.stmt("SELECT 1 FROM {inbox_aside} WHERE consumer = ").number(c.number).sql(" AND blocking = 1 AND key_hash = ").
			word(m.hash).sql(" LIMIT 1").row(ctx, tx).Scan(&one)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("classic: deferred: %w", err)
		}
		blocked = err == nil
	}
	status := back.Status
	if status == feeds.StatusWaiting && !blocked {
		return errFreed
	}
	// One that fails while its key is blocked already, as by a message that another process has received, waits like the others.
	if status == feeds.StatusRetry && back.Blocking && blocked {
		status = feeds.StatusWaiting
	}
	doc, err := encodeAside(m.Message)
	if err != nil {
		return fmt.Errorf("classic: deferred: %w", err)
	}
	st := s.cfg.stmt("INSERT INTO {inbox_aside} (consumer, message_id, key_hash, status, blocking, attempts, last_error, deferred_at, ",
		"tried_at, available_at, message, payload) VALUES (").number(c.number).sql(",").word(string(m.ID[:])).sql(",").word(m.hash).sql(",").
		text(string(status)).sql(",", strconv.FormatBool(back.Blocking && m.hash != "")).sql(",").number(int64(back.Attempts)).sql(",").
		text(causeOf(back.Cause)).sql(",{now},")
	switch status {
	case feeds.StatusRetry:
		st.sql("{now},").later("{now}", back.Delay)
	case feeds.StatusDead:
		st.sql("{now},NULL")
	default:
		st.sql("NULL,NULL")
	}
	result, err := st.sql(",").arg(doc).sql(",").arg(append([]byte{}, m.Payload...)).sql(")").exec(ctx, tx)
	if err != nil {
		return fmt.Errorf("classic: deferred: %w", err)
	}
	seq, err := result.LastInsertId()
	if err == nil {
		_, err = s.cfg.stmt("INSERT INTO {inbox_turns} (seq) VALUES (").number(seq).sql(")").exec(ctx, tx)
	}
	if err != nil {
		return fmt.Errorf("classic: deferred: %w", err)
	}
	return nil
}

// promoteAside makes the first message of a key go, now that what it waited for is gone. The consumer is locked.
func (c *Config) promoteAside(ctx context.Context, tx *sql.Tx, consumer int64, hash string) error {
	var seq int64
	var status string
	err := c.stmt("SELECT seq, status FROM {inbox_aside} WHERE consumer = ").number(consumer).sql(" AND blocking = 1 AND key_hash = ").word(hash).
		sql(" ORDER BY seq LIMIT 1").row(ctx, tx).Scan(&seq, &status)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err == nil && status == string(feeds.StatusWaiting) {
		_, err = c.stmt(asideAgain).number(seq).exec(ctx, tx)
	}
	return err
}

// asideAgain has a message tried at once, with all its attempts ahead of it.
const asideAgain = "UPDATE {inbox_aside} SET status = 'retry', attempts = 0, available_at = {now} WHERE seq = "

const maxAsideCause = 4000

// causeOf makes an error fit for a column.
func causeOf(text string) string {
	if len(text) > maxAsideCause {
		text = text[:maxAsideCause]
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, ""), "\x00", "")
}

// asideFields are what a message that is deferred is read from; c is its consumer.
func (c *Config) asideFields(payload bool) string {
	body := "''"
	if payload {
		body = "a.payload"
	}
	return "a.seq, c.name, a.message_id, a.status, a.blocking, a.attempts, a.last_error, " + c.Dialect.micros("a.deferred_at") + ", " +
		c.Dialect.micros("a.tried_at") + ", " + c.Dialect.micros("a.available_at") + ", a.message, " + body
}

func scanAside(scan func(...any) error) (d feeds.Deferred, err error) {
	var name, id, doc []byte
	var deferred, tried, available sql.NullInt64
	err = scan(&d.Seq, &name, &id, &d.Status, &d.Blocking, &d.Attempts, &d.LastError, &deferred, &tried, &available, &doc, &d.Payload)
	if err != nil {
		return d, err
	}
	d.Feed, d.ID = inbox.Feed(string(name)), postrider.ID(id)
	d.DeferredAt, d.TriedAt, d.AvailableAt = moment(deferred), moment(tried), moment(available)
	d.EnqueuedAt = d.DeferredAt
	return d, decodeAside(doc, &d.Message)
}

// seqs runs a statement that returns numbers of messages.
func (s *inboxStore) seqs(ctx context.Context, q querier, statement string) (all []int64, err error) {
	err = s.cfg.stmt(statement).each(ctx, q, func(scan func(...any) error) error {
		var n int64
		err := scan(&n)
		all = append(all, n)
		return err
	})
	return all, err
}

func joined(numbers []int64) string {
	texts := make([]string, len(numbers))
	for i, n := range numbers {
		texts[i] = strconv.FormatInt(n, 10)
	}
	return strings.Join(texts, ",")
}
