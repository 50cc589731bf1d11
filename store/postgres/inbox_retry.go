package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/store/feeds"
)

// Retry implements [inbox.Store].
func (s *inboxStore[Tx]) Retry(ctx context.Context, consumer string, work func(context.Context, Tx, feeds.Deferred) error, judge func(feeds.Deferred, error) inbox.Deferral) (inbox.Attempt, error) {
	none := inbox.Attempt{Next: -1}
	t, err := s.db.begin(ctx)
	if err != nil {
		return none, fmt.Errorf("postgres: retry: %w", explain(err))
	}
	defer func() { _ = t.rollback(context.WithoutCancel(ctx)) }()
	feed := inbox.Feed(consumer)
	var r deferredRow
	err = t.row(ctx, s.cfg.in("SELECT "+deferredColumns+" FROM @schema@.take_due($1) d"), []any{feed}, r.targets()...)
	if errors.Is(err, errNoRow) {
		return s.next(ctx, t, feed)
	}
	if err != nil {
		return none, fmt.Errorf("postgres: retry: %w", explain(err))
	}
	d := r.deferred()
	if _, err := t.exec(ctx, "SAVEPOINT postrider"); err != nil {
		return none, fmt.Errorf("postgres: retry: %w", explain(err))
	}
	inside, end := postrider.ForTransaction(ctx)
	defer end(false)
	failed := work(inside, t.tx, d)
	if failed == nil {
		failed, err = s.finish(ctx, t, d)
		if failed == nil {
			end(err == nil)
			if errors.Is(err, errDecided) {
				err = nil
			}
			return inbox.Attempt{Found: true}, err
		}
	}
	end(false)
	return inbox.Attempt{Found: true, Failed: failed}, s.fail(ctx, t, d, judge(d, failed))
}

var errDecided = errors.New("postgres: an operator has decided about the message")

// finish commits the work for a message. Its first result is the reason why the database
// permanently refused the work.
func (s *inboxStore[Tx]) finish(ctx context.Context, t transaction[Tx], d feeds.Deferred) (refusal, err error) {
	err = s.conclude(ctx, t, d, true, inbox.Deferral{})
	if sqlState(err) == "25P02" { // a statement failed, and the handler ignored it
		return err, nil
	}
	if err != nil {
		return nil, err
	}
	err = t.commit(ctx)
	var failed *inbox.FailedError
	if err != nil && errors.As(refused(ctx, err), &failed) {
		return failed.Err, nil
	}
	if err != nil {
		return nil, refused(ctx, err)
	}
	return nil, nil
}

// fail undoes the work for a message and records the failed attempt. It does so in the same
// transaction, so that no other process takes the message in between. If that transaction is lost,
// for instance because a statement took too long, it uses another one.
func (s *inboxStore[Tx]) fail(ctx context.Context, t transaction[Tx], d feeds.Deferred, back inbox.Deferral) error {
	_, err := t.exec(ctx, "ROLLBACK TO SAVEPOINT postrider")
	if err != nil {
		_ = t.rollback(context.WithoutCancel(ctx))
		if t, err = s.db.begin(ctx); err != nil {
			return fmt.Errorf("postgres: retry: %w", explain(err))
		}
		defer func() { _ = t.rollback(context.WithoutCancel(ctx)) }()
	}
	if err = s.conclude(ctx, t, d, false, back); errors.Is(err, errDecided) {
		return nil
	}
	if err == nil {
		err = t.commit(ctx)
	}
	if err != nil {
		return fmt.Errorf("postgres: retry: %w", explain(err))
	}
	return nil
}

// conclude records the end of an attempt, which takes effect when the transaction commits. It
// returns errDecided if an operator acted on the message first.
func (s *inboxStore[Tx]) conclude(ctx context.Context, in statements, d feeds.Deferred, delivered bool, back inbox.Deferral) error {
	var done bool
	err := in.row(ctx, s.cfg.in("SELECT @schema@.inbox_conclude($1, $2, $3, $4, $5, $6, $7, $8)"),
		[]any{d.Feed, d.Seq, d.AvailableAt.UnixMicro(), delivered, string(back.Status), int64(back.Attempts), back.Delay.Seconds(),
			clean(back.Cause)}, &done)
	if err != nil {
		return fmt.Errorf("postgres: retry: %w", explain(err))
	}
	if !done {
		return errDecided
	}
	return nil
}

func (s *inboxStore[Tx]) next(ctx context.Context, in statements, feed string) (inbox.Attempt, error) {
	var ms *int64
	err := in.row(ctx, s.cfg.in("SELECT @schema@.next_due($1)"), []any{feed}, &ms)
	if err != nil || ms == nil {
		return inbox.Attempt{Next: -1}, explain(err)
	}
	return inbox.Attempt{Next: time.Duration(max(*ms, 10)) * time.Millisecond}, nil
}

// row is a message in the form that the SQL function inbox_defer takes. The payload is a separate
// argument.
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
}

// received returns a message in the form that inbox_defer takes. It replaces what a column cannot
// hold, because a broker may deliver anything.
func received(m postrider.Message) (string, error) {
	r := row{
		ID: m.ID, Type: text(m.Type), AggregateType: text(m.AggregateType), AggregateID: text(m.AggregateID), Key: text(m.Key),
		Topic: text(m.Topic), RoutingKey: text(m.RoutingKey), TenantID: text(m.TenantID), ContentType: text(m.ContentType),
		SchemaVersion: max(m.SchemaVersion, 1), SchemaID: text(m.SchemaID), DedupKey: text(m.DedupKey), OccurredAt: m.OccurredAt.UTC(),
		CorrelationID: text(m.CorrelationID), CausationID: text(m.CausationID),
	}
	if m.Key == "" && (m.AggregateType == "") != (m.AggregateID == "") {
		r.Key = text(m.OrderKey())
	}
	for name, value := range m.Headers {
		if r.Headers == nil {
			r.Headers = make(map[string]string, len(m.Headers))
		}
		r.Headers[text(name)] = text(value)
	}
	b, err := json.Marshal(r)
	return string(b), err
}

// text replaces what a text column cannot hold: NUL and invalid UTF-8.
func text(s string) string {
	if strings.IndexByte(s, 0) < 0 && utf8.ValidString(s) {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
