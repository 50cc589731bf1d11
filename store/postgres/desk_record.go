package postgres

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/desk"
)

// letterRecord gathers what the record of an act keeps: of one message all of it, of many their number.
type letterRecord struct {
	by     desk.By
	act    desk.Act
	filter desk.Filter
	count  int
	before map[string]int
	first  *postrider.Deferred
}

func (r *letterRecord) add(list []postrider.Deferred, n int) {
	if r.before == nil {
		r.before = make(map[string]int)
		r.first = &list[0]
	}
	for i := range list {
		r.before[string(list[i].Status)]++
	}
	r.count += n
}

func (r *letterRecord) write(ctx context.Context, d *Desk) error {
	if r.count == 0 {
		return nil
	}
	if r.count > 1 {
		return d.record(context.WithoutCancel(ctx), d.pool, r.by, string(r.act), r.filter.Feed, r.count, r.filter, r.before, nil)
	}
	var after any
	if r.act != desk.Discard {
		after = map[string]any{"status": map[desk.Act]postrider.Status{
			desk.Retry: postrider.StatusRetry, desk.Skip: postrider.StatusDead, desk.Park: postrider.StatusParked,
		}[r.act]}
	}
	return d.record(context.WithoutCancel(ctx), d.pool, r.by, string(r.act), r.first.Feed, 1, r.filter, description(r.first), after)
}

func description(m *postrider.Deferred) map[string]any {
	payload := string(m.Payload)
	if !utf8.ValidString(payload) {
		payload = base64.StdEncoding.EncodeToString(m.Payload)
	}
	return map[string]any{
		"id": m.ID, "seq": m.Seq, "type": m.Type, "topic": m.Topic, "key": m.OrderKey(), "status": m.Status,
		"attempts": m.Attempts, "last_error": m.LastError, "headers": m.Headers, "payload": payload,
	}
}

// executor is a pool or a transaction.
type executor interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

func (d *Desk) record(ctx context.Context, in executor, by desk.By, action, feed string, count int, target, before, after any) error {
	texts := make([]string, 3)
	for i, v := range []any{target, before, after} {
		text, err := json.Marshal(v)
		if err != nil {
			return err
		}
		texts[i] = jsonText(text)
	}
	_, err := in.Exec(ctx, d.cfg.in(`SELECT @schema@.record($1, $2, $3, nullif($4, ''), $5, $6::jsonb,
		nullif($7::jsonb, 'null'), nullif($8::jsonb, 'null'))`),
		pgx.QueryExecModeExec, by.Who, by.Why, action, feed, count, texts[0], texts[1], texts[2])
	if err != nil {
		return fmt.Errorf("postgres: %s could not be recorded: %w", action, explain(err))
	}
	return nil
}
