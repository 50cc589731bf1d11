package postgres

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
)

// OutboxConfig is how producers write.
type OutboxConfig struct {
	Config
	// LockKeys makes Enqueue lock each message's key until the transaction ends, so that messages of a key are
	// delivered in commit order even if their writers share no other lock. Writers that lock the aggregate's row before
	// they enqueue do not need it. Defaults to false.
	LockKeys bool
}

// Outbox writes messages in a pgx transaction. It is safe for concurrent use and needs no connection of its own.
type Outbox struct{ enqueuer }

// SQLOutbox writes messages in a database/sql transaction, with any PostgreSQL driver.
type SQLOutbox struct{ enqueuer }

var (
	_ postrider.Outbox[pgx.Tx]  = (*Outbox)(nil)
	_ postrider.Outbox[*sql.Tx] = (*SQLOutbox)(nil)
)

// NewOutbox returns an outbox for pgx.
func NewOutbox(cfg OutboxConfig) (*Outbox, error) {
	e, err := newEnqueuer(cfg)
	return &Outbox{e}, err
}

// NewSQLOutbox returns an outbox for database/sql.
func NewSQLOutbox(cfg OutboxConfig) (*SQLOutbox, error) {
	e, err := newEnqueuer(cfg)
	return &SQLOutbox{e}, err
}

// Enqueue implements [postrider.Outbox]. It uses the connection's own query mode: with pgx's default, the first Enqueue on a
// connection also prepares the statement; behind a pooler that allows no prepared statements, configure pgx accordingly.
func (o *Outbox) Enqueue(ctx context.Context, tx pgx.Tx, msgs ...postrider.Message) error {
	_, err := o.Offer(ctx, tx, msgs...)
	return err
}

// Offer implements [postrider.Outbox].
func (o *Outbox) Offer(ctx context.Context, tx pgx.Tx, msgs ...postrider.Message) (repeats []int, err error) {
	return o.enqueue(msgs, func(args []any) (repeats *string, err error) {
		err = tx.QueryRow(ctx, o.statement, args...).Scan(&repeats)
		return repeats, err
	})
}

// Enqueue implements [postrider.Outbox].
func (o *SQLOutbox) Enqueue(ctx context.Context, tx *sql.Tx, msgs ...postrider.Message) error {
	_, err := o.Offer(ctx, tx, msgs...)
	return err
}

// Offer implements [postrider.Outbox].
func (o *SQLOutbox) Offer(ctx context.Context, tx *sql.Tx, msgs ...postrider.Message) (repeats []int, err error) {
	return o.enqueue(msgs, func(args []any) (repeats *string, err error) {
		err = tx.QueryRowContext(ctx, o.statement, args...).Scan(&repeats)
		return repeats, err
	})
}

type enqueuer struct {
	statement string
	lockKeys  bool
}

func newEnqueuer(cfg OutboxConfig) (enqueuer, error) {
	c, err := cfg.withDefaults()
	// As text, which every driver reads alike.
	return enqueuer{c.in("SELECT array_to_string(@schema@.enqueue_batch($1, $2, $3, $4), ' ')"), cfg.LockKeys}, err
}

func (e enqueuer) enqueue(msgs []postrider.Message, send func(args []any) (*string, error)) (repeats []int, err error) {
	if len(msgs) == 0 {
		return nil, nil
	}
	messages, payloads, err := encode(msgs)
	if err != nil {
		return nil, err
	}
	unique := slices.ContainsFunc(msgs, func(m postrider.Message) bool { return m.DedupKey != "" })
	places, err := send([]any{messages, payloads, e.lockKeys, unique})
	if err != nil {
		return nil, fmt.Errorf("postgres: enqueue: %w", explain(err))
	}
	if places != nil {
		for _, place := range strings.Fields(*places) {
			n, err := strconv.Atoi(place)
			if err != nil {
				return nil, fmt.Errorf("postgres: enqueue: %w", err)
			}
			repeats = append(repeats, n-1)
		}
	}
	return repeats, nil
}

// row is a message as enqueue_batch takes it; its payload lies in a separate block of bytes.
type row struct {
	ID            postrider.ID      `json:"id"`
	Type          string            `json:"type"`
	AggregateType string            `json:"aggregate_type,omitempty"`
	AggregateID   string            `json:"aggregate_id,omitempty"`
	Key           string            `json:"key,omitempty"`
	Topic         string            `json:"topic,omitempty"`
	RoutingKey    string            `json:"routing_key,omitempty"`
	TenantID      string            `json:"tenant_id,omitempty"`
	ContentType   string            `json:"content_type,omitempty"`
	SchemaVersion int               `json:"schema_version"`
	SchemaID      string            `json:"schema_id,omitempty"`
	DedupKey      string            `json:"dedup_key,omitempty"`
	OccurredAt    time.Time         `json:"occurred_at,omitzero"`
	CorrelationID string            `json:"correlation_id,omitempty"`
	CausationID   string            `json:"causation_id,omitempty"`
	Headers       map[string]string `json:"headers,omitempty"`
	Offset        int               `json:"offset"`
	Length        int               `json:"length"`
	DeliverAfter  time.Time         `json:"deliver_after,omitzero"`
	Priority      int               `json:"priority,omitempty"`
}

func encode(msgs []postrider.Message) (messages string, payloads []byte, err error) {
	if err := postrider.ValidateAll(msgs); err != nil {
		return "", nil, err
	}
	rows := make([]row, len(msgs))
	size := 0
	for i := range msgs {
		m := &msgs[i]
		rows[i] = row{
			m.ID, m.Type, m.AggregateType, m.AggregateID, m.Key, m.Topic, m.RoutingKey, m.TenantID, m.ContentType,
			max(m.SchemaVersion, 1), m.SchemaID, m.DedupKey, m.OccurredAt.UTC(), m.CorrelationID, m.CausationID, m.Headers,
			size, len(m.Payload), m.DeliverAfter.UTC(), m.Priority,
		}
		if m.ID.IsZero() {
			rows[i].ID = postrider.NewID()
		}
		size += len(m.Payload)
	}
	if size > 1<<30-1<<20 {
		return "", nil, fmt.Errorf("postgres: %w: %d bytes of payload in one Enqueue; split it", postrider.ErrUnsupported, size)
	}
	payloads = make([]byte, 0, size)
	for i := range msgs {
		payloads = append(payloads, msgs[i].Payload...)
	}
	text, err := json.Marshal(rows)
	return string(text), payloads, err
}
