package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/reconcile"
	"github.com/postrider/postrider/store/feeds"
)

// sentLog is the log as one feed has delivered it, for reconcilers.
type sentLog struct {
	admin *Admin
	feed  string
	who   string
}

var _ reconcile.Log = (*sentLog)(nil)

// Sent implements [reconcile.Log].
func (l *sentLog) Sent(ctx context.Context, since, until time.Time, before int64, limit int) ([]reconcile.Sent, error) {
	filter := admin.Filter{Since: since, Until: until, Statuses: []feeds.Status{feeds.StatusPublished}}
	var sent []reconcile.Sent
	for {
		page, err := l.admin.page(ctx, l.feed, filter, before, limit-len(sent), true)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			sent = append(sent, reconcile.Sent{Message: page.Items[i].Message, Place: page.Items[i].Seq})
		}
		if before = page.Next; before == 0 || len(sent) >= limit {
			return sent, nil
		}
	}
}

// Resend implements [reconcile.Log].
func (l *sentLog) Resend(ctx context.Context, places []int64, why string) error {
	list, err := json.Marshal(places)
	if err != nil {
		return err
	}
	var done int64
	err = l.admin.change(ctx, &done, "SELECT @schema@.resend_for($1, $2, $3, $4)", l.who, why, l.feed, string(list))
	if err != nil {
		return fmt.Errorf("postgres: resend: %w", explain(err))
	}
	return nil
}

type receipts struct {
	statements
	cfg Config
}

// Missing implements [reconcile.Receipts].
func (r receipts) Missing(ctx context.Context, consumer string, ids []postrider.ID) ([]postrider.ID, error) {
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	var missing []postrider.ID
	var text string
	err = r.rows(ctx, r.cfg.in(`SELECT i.id FROM json_array_elements_text($2::json) i(id)
		WHERE NOT EXISTS (SELECT FROM @schema@.inbox_messages m WHERE m.consumer = $1 AND m.message_id = i.id::uuid)`),
		[]any{consumer, string(list)}, []any{&text}, func() error {
			id, err := postrider.ParseID(text)
			missing = append(missing, id)
			return err
		})
	if err != nil {
		return nil, fmt.Errorf("postgres: receipts: %w", explain(err))
	}
	return missing, nil
}

// RecordReconciler adds to the audit log that an operator has run a reconciler by hand.
func (d *Admin) RecordReconciler(ctx context.Context, by admin.By, job string, n reconcile.Counts) error {
	_, err := d.pool.Exec(ctx, d.cfg.in("SELECT @schema@.record_reconciler($1, $2, $3, $4, $5)"), pgx.QueryExecModeExec, by.Who, by.Why, job, n.Found, n.Fixed)
	if err != nil {
		return fmt.Errorf("postgres: record: %w", explain(err))
	}
	return nil
}
