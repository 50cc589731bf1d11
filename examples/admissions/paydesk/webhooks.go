package paydesk

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Run sends webhooks until ctx ends. It retries each until the response is 2xx, and then sends it
// once more.
func (d *Desk) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		sent, err := d.sendNext(ctx)
		if err != nil && ctx.Err() == nil {
			slog.Warn("paydesk: webhook not sent", "err", err)
		}
		if sent {
			continue
		}
		select {
		case <-ctx.Done():
		case <-d.news:
		case <-time.After(500 * time.Millisecond):
		}
	}
	return nil
}

// sendNext sends a webhook that is due, if there is one.
func (d *Desk) sendNext(ctx context.Context) (sent bool, err error) {
	err = pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, "SELECT id, body FROM paydesk.webhooks WHERE due_at <= now() ORDER BY due_at LIMIT 1 FOR UPDATE SKIP LOCKED")
		due, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct{ ID, Body string }])
		if err != nil || len(due) == 0 {
			return err
		}
		failed := d.send(ctx, due[0].ID, due[0].Body)
		if failed != nil {
			slog.Warn("paydesk: the customer does not take a webhook", "id", due[0].ID, "err", failed)
			_, err = tx.Exec(ctx, `
				UPDATE paydesk.webhooks SET failures = failures + 1, due_at = now() + least(0.5 * 2 ^ failures, 30) * interval '1 s'
				WHERE id = $1`, due[0].ID)
			return err
		}
		sent = true
		_, err = tx.Exec(ctx, "UPDATE paydesk.webhooks SET left_to_send = left_to_send - 1 WHERE id = $1", due[0].ID)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "DELETE FROM paydesk.webhooks WHERE id = $1 AND left_to_send = 0", due[0].ID)
		return err
	})
	return sent && err == nil, err
}

// send sends a webhook as specified by Standard Webhooks.
func (d *Desk) send(ctx context.Context, id, body string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, d.config.WebhookURL, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	d.signer.Sign(r.Header, id, time.Now(), []byte(body))
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("answered %s", answer.Status)
	}
	return nil
}
