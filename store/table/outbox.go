package table

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/enqueue"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// outbox writes messages into the table that [Migrator] creates, in a database/sql transaction. It is safe for concurrent use and
// needs no connection of its own.
type outbox struct{ cfg Config }

var _ postrider.Outbox[*sql.Tx] = (*outbox)(nil)

// Enqueue implements [postrider.Outbox]. Some thousand messages make one statement; dedup keys make another.
func (o *outbox) Enqueue(ctx context.Context, tx *sql.Tx, msgs ...postrider.Message) error {
	_, err := o.Offer(ctx, tx, msgs...)
	return err
}

// Offer implements [postrider.Outbox].
func (o *outbox) Offer(ctx context.Context, tx *sql.Tx, msgs ...postrider.Message) (repeats []int, err error) {
	if err := enqueue.Validate(msgs); err != nil {
		return nil, err
	}
	if tx == nil {
		return nil, errors.New("table: enqueue: tx is nil")
	}
	repeats, err = o.claim(ctx, tx, msgs)
	if err != nil {
		return nil, fmt.Errorf("table: enqueue: dedup keys: %w", o.explain(err))
	}
	fresh := msgs
	if len(repeats) > 0 {
		fresh = nil
		for i, m := range msgs {
			if _, found := slices.BinarySearch(repeats, i); !found {
				fresh = append(fresh, m)
			}
		}
	}
	for len(fresh) > 0 {
		n := oneStatement(fresh)
		if err := o.insert(ctx, tx, fresh[:n]); err != nil {
			return nil, fmt.Errorf("table: enqueue: %w", o.explain(err))
		}
		fresh = fresh[n:]
	}
	return repeats, nil
}

func (o *outbox) explain(err error) error {
	if sqltext.IsMissingTable(err) {
		return fmt.Errorf("%w: %w", feeds.ErrSchema, err)
	}
	return err
}

// Limits on one statement: servers take some 65,000 arguments, and MySQL 16 MB by default.
const (
	maxRows  = 2000
	maxBytes = 4 << 20
)

// oneStatement returns how many of the messages one statement takes.
func oneStatement(msgs []postrider.Message) int {
	size := 0
	for i := range msgs {
		if size += len(msgs[i].Payload) + 1024; i > 0 && (size > maxBytes || i == maxRows) {
			return i
		}
	}
	return len(msgs)
}

// columns are those that Enqueue writes.
var columns = []string{
	"message_id", "type", "aggregate_type", "aggregate_id", "order_key", "topic", "routing_key", "tenant_id", "content_type",
	"schema_version", "schema_id", "dedup_key", "correlation_id", "causation_id", "priority", "occurred_at", "deliver_after", "headers",
	"payload",
}

var valuesOfRow = "(" + strings.TrimSuffix(strings.Repeat("?, ", len(columns)), ", ") + ")"

func (o *outbox) insert(ctx context.Context, tx *sql.Tx, msgs []postrider.Message) error {
	s := o.cfg.stmt("INSERT INTO {outbox} (", strings.Join(columns, ", "), ") VALUES ")
	s.Args = make([]any, 0, len(msgs)*len(columns))
	for i := range msgs {
		if i > 0 {
			s.SQL(", ")
		}
		s.SQL(valuesOfRow)
		s.Args = append(s.Args, o.row(&msgs[i])...)
	}
	_, err := s.Exec(ctx, tx)
	return err
}

func (o *outbox) row(m *postrider.Message) []any {
	id := m.ID
	if id.IsZero() {
		id = postrider.NewID()
	}
	var headers any
	if len(m.Headers) > 0 {
		text, _ := json.Marshal(m.Headers) // texts only
		headers = string(text)
	}
	payload := m.Payload
	if payload == nil {
		payload = []byte{}
	}
	return []any{
		id.String(), m.Type, orNull(m.AggregateType), orNull(m.AggregateID), orNull(m.Key), orNull(m.Topic), orNull(m.RoutingKey),
		orNull(m.TenantID), orNull(m.ContentType), max(m.SchemaVersion, 1), orNull(m.SchemaID), orNull(m.DedupKey), orNull(m.CorrelationID),
		orNull(m.CausationID), m.Priority, o.time(m.OccurredAt), o.time(m.DeliverAfter), headers, payload,
	}
}

func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// time writes a time as text, which no setting of a driver changes.
func (o *outbox) time(at time.Time) any {
	switch {
	case at.IsZero():
		return nil
	case o.cfg.Dialect == sqltext.MySQL:
		return at.UTC().Format("2006-01-02 15:04:05.000000")
	}
	return at.UTC().Format("2006-01-02 15:04:05.000000Z07:00")
}
