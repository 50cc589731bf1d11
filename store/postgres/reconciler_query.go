package postgres

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/reconcile"
)

// ReconcilerQuery is a [reconcile.Find] in SQL: a query for business rows that lack their effect.
// It runs read-only.
type ReconcilerQuery struct {
	// SQL is one SELECT. $1 is since and $2 is until, both of type timestamptz. Its columns are the
	// fields of a message, by name: type, aggregate_type, aggregate_id, key, topic, routing_key,
	// tenant_id, payload (json or text) or payload_bytes (bytea), content_type, headers (json),
	// schema_version, schema_id, dedup_key, occurred_at, deliver_after, priority, correlation_id
	// and causation_id. Other columns are allowed if DedupKey uses them. Required.
	SQL string
	// Type, AggregateType and Topic apply to all messages. They default to the columns of the same
	// names.
	Type, AggregateType, Topic string
	// DedupKey is a text with columns in braces, such as "enrollment:{id}". Defaults to column
	// dedup_key.
	DedupKey string
	// Timeout bounds the query. Defaults to the server's statement_timeout.
	Timeout time.Duration
}

// Find returns the query for jobs that use pgx transactions.
func (q ReconcilerQuery) Find() (reconcile.Find[pgx.Tx], error) { return find(q, pgxDatabase{}.in) }

// SQLFind returns the query for jobs that use database/sql transactions.
func (q ReconcilerQuery) SQLFind() (reconcile.Find[*sql.Tx], error) { return find(q, sqlDatabase{}.in) }

// Validate reports all errors that can be found without the database.
func (q ReconcilerQuery) Validate() error {
	var errs []error
	if strings.TrimSpace(q.SQL) == "" {
		errs = append(errs, errors.New("postgres: the query is empty"))
	}
	if q.Timeout < 0 {
		errs = append(errs, fmt.Errorf("postgres: the timeout of the query is %v: want more than 0", q.Timeout))
	}
	if _, err := q.key(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// key returns the template of the dedup key, or nil if the query has a dedup_key column.
func (q ReconcilerQuery) key() (*reconcile.KeyTemplate, error) {
	if q.DedupKey == "" {
		return nil, nil
	}
	key, err := reconcile.ParseKey(q.DedupKey)
	return &key, err
}

func find[Tx any](q ReconcilerQuery, in func(Tx) statements) (reconcile.Find[Tx], error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	key, _ := q.key()
	// The comparison tells the server the types of the arguments, whether or not the query uses
	// them. The line break ends a comment at the end of the query.
	statement := "SELECT to_json(q)::text FROM (" + strings.TrimRight(strings.TrimSpace(q.SQL), ";") +
		"\n) q WHERE $1::timestamptz <= $2::timestamptz LIMIT $3"
	return func(ctx context.Context, tx Tx, since, until time.Time, limit int) ([]postrider.Message, error) {
		var found []postrider.Message
		err := readOnly(ctx, in(tx), q.Timeout, func(s statements) error {
			var text string
			return s.rows(ctx, statement, []any{since, until, int64(limit)}, []any{&text}, func() error {
				m, err := q.message(text, key)
				found = append(found, m)
				return err
			})
		})
		if err != nil {
			return nil, fmt.Errorf("postgres: reconciler query: %w", err)
		}
		return found, nil
	}, nil
}

// readOnly runs do in a savepoint, read-only and with a timeout. Rolling the savepoint back
// restores both settings.
func readOnly(ctx context.Context, s statements, timeout time.Duration, do func(statements) error) error {
	before := []string{"SAVEPOINT postrider_reconciler", "SET LOCAL transaction_read_only = on"}
	if timeout > 0 {
		before = append(before, fmt.Sprintf("SET LOCAL statement_timeout = %d", max(timeout.Milliseconds(), 1)))
	}
	for _, statement := range before {
		if _, err := s.exec(ctx, statement); err != nil {
			return err
		}
	}
	if err := do(s); err != nil {
		return err
	}
	if _, err := s.exec(ctx, "ROLLBACK TO SAVEPOINT postrider_reconciler"); err != nil {
		return err
	}
	_, err := s.exec(ctx, "RELEASE SAVEPOINT postrider_reconciler")
	return err
}

// message builds a message from a row, given as a JSON object of its columns.
func (q ReconcilerQuery) message(text string, key *reconcile.KeyTemplate) (postrider.Message, error) {
	m := postrider.Message{Type: q.Type, AggregateType: q.AggregateType, Topic: q.Topic}
	var columns map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &columns); err != nil {
		return m, err
	}
	for name, value := range columns {
		err := setColumn(&m, name, value)
		if errors.Is(err, errNoColumn) && key != nil && key.Uses(name) {
			continue
		}
		if err != nil {
			return m, fmt.Errorf("column %s: %w", name, err)
		}
	}
	if key == nil {
		return m, nil
	}
	var err error
	m.DedupKey, err = key.Fill(func(column string) (string, bool) {
		value, ok := columns[column]
		return textOf(value), ok
	})
	return m, err
}

var errNoColumn = errors.New("no message has such a field")

// setColumn sets the field with the name of a column. Null leaves the field unchanged.
func setColumn(m *postrider.Message, name string, value json.RawMessage) error {
	text := textOf(value)
	into := func(target any) error { return json.Unmarshal(value, target) }
	texts := map[string]*string{
		"type": &m.Type, "aggregate_type": &m.AggregateType, "aggregate_id": &m.AggregateID, "key": &m.Key, "topic": &m.Topic,
		"routing_key": &m.RoutingKey, "tenant_id": &m.TenantID, "content_type": &m.ContentType, "schema_id": &m.SchemaID,
		"dedup_key": &m.DedupKey, "correlation_id": &m.CorrelationID, "causation_id": &m.CausationID,
	}
	if target, ok := texts[name]; ok {
		if text != "" {
			*target = text
		}
		return nil
	}
	switch name {
	case "payload":
		m.Payload = []byte(text)
		if m.ContentType == "" && json.Valid(m.Payload) {
			m.ContentType = "application/json"
		}
		return nil
	case "payload_bytes":
		var err error
		m.Payload, err = hexBytes(text)
		return err
	case "headers":
		return into(&m.Headers)
	case "schema_version":
		return into(&m.SchemaVersion)
	case "priority":
		return into(&m.Priority)
	case "occurred_at":
		return into(&m.OccurredAt)
	case "deliver_after":
		return into(&m.DeliverAfter)
	}
	return errNoColumn
}
