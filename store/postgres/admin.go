package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
)

// Admin implements the admin API. It is safe for concurrent use.
type Admin struct {
	pool *pgxpool.Pool
	cfg  Config
}

var (
	_ admin.DeadLetters = (*Admin)(nil)
	_ admin.Excluder    = (*Admin)(nil)
	_ admin.Feeds       = (*Admin)(nil)
	_ admin.Records     = (*Admin)(nil)
	_ admin.Log         = (*Admin)(nil)
	_ admin.Gauges      = (*Admin)(nil)
	_ admin.Replays     = (*Admin)(nil)
)

// List implements [admin.DeadLetters].
func (d *Admin) List(ctx context.Context, filter admin.Filter, after *feeds.Deferred, limit int) ([]feeds.Deferred, error) {
	columns := briefColumns
	if !filter.ID.IsZero() {
		columns = deferredColumns
	}
	text := filter.Error
	filter.Error = ""
	w := deferredWhere(&filter)
	if after != nil {
		w.add("(d.feed, d.seq) > (%s, %s)", after.Feed, after.Seq)
	}
	rest, page := w.String(), " ORDER BY d.feed, d.seq LIMIT "+w.arg(limit)
	if text == "" {
		return d.list(ctx, "SELECT "+columns+" FROM @schema@.deferred d"+rest+page, w.args)
	}
	// Words that occur in many errors are found fastest by scanning messages in order, and rare
	// words by the full-text index. The planner cannot tell which is which, so scan a few first.
	match := w.errorHas(text)
	list, err := d.list(ctx, "SELECT "+columns+" FROM (SELECT * FROM @schema@.deferred d"+rest+
		" ORDER BY d.feed, d.seq LIMIT 3000) d WHERE "+match+page, w.args)
	if err != nil || len(list) == limit {
		return list, err
	}
	return d.list(ctx, "WITH hits AS MATERIALIZED (SELECT d.feed, d.seq FROM @schema@.deferred d WHERE "+match+") SELECT "+
		columns+" FROM hits JOIN @schema@.deferred d USING (feed, seq)"+rest+page, w.args)
}

func (d *Admin) list(ctx context.Context, sql string, args []any) ([]feeds.Deferred, error) {
	rows, err := d.query(ctx, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("postgres: list: %w", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (feeds.Deferred, error) {
		var r deferredRow
		err := row.Scan(r.targets()...)
		return r.deferred(), err
	})
	if err != nil {
		return nil, fmt.Errorf("postgres: list: %w", explain(err))
	}
	return list, nil
}

// Blocked implements [admin.DeadLetters].
func (d *Admin) Blocked(ctx context.Context, feed string, limit int) ([]admin.BlockedKey, error) {
	rows, err := d.query(ctx, `SELECT `+briefColumns+`, k.since, k.waiting FROM (
		  SELECT b.feed, b.order_key, min(b.seq) AS seq, min(b.deferred_at) AS since, count(*) - 1 AS waiting
		  FROM @schema@.deferred b WHERE b.blocking AND ($1 = '' OR b.feed = $1)
		  GROUP BY b.feed, b.order_key ORDER BY since LIMIT $2) k
		JOIN @schema@.deferred d ON d.feed = k.feed AND d.seq = k.seq ORDER BY k.since, d.seq`, feed, limit)
	if err != nil {
		return nil, fmt.Errorf("postgres: blocked keys: %w", err)
	}
	keys, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (admin.BlockedKey, error) {
		var r deferredRow
		var k admin.BlockedKey
		err := row.Scan(append(r.targets(), &k.Since, &k.Waiting)...)
		k.Head = r.deferred()
		k.Feed, k.Key, k.Since = k.Head.Feed, k.Head.OrderKey(), k.Since.UTC()
		return k, err
	})
	if err != nil {
		return nil, fmt.Errorf("postgres: blocked keys: %w", explain(err))
	}
	return keys, nil
}

// actPage is how many messages an act changes in one transaction, because relays wait for that
// transaction. Each page has an audit record of its own.
const actPage = 1000

// Act implements [admin.DeadLetters].
func (d *Admin) Act(ctx context.Context, by admin.By, act admin.Act, filter admin.Filter, limit int) (int, error) {
	if act.From() == nil {
		return 0, fmt.Errorf("postgres: there is no act %q", act)
	}
	if len(filter.Statuses) == 0 {
		filter.Statuses = act.From()
	}
	target, err := json.Marshal(filter)
	if err != nil {
		return 0, err
	}
	total := 0
	var after *feeds.Deferred
	for {
		page := actPage
		if limit > 0 {
			page = min(page, limit-total)
		}
		list, err := d.List(ctx, filter, after, page)
		if err != nil || len(list) == 0 {
			return total, err
		}
		names, seqs := make([]string, len(list)), make([]int64, len(list))
		for i := range list {
			names[i], seqs[i] = list[i].Feed, list[i].Seq
		}
		var n int
		err = d.change(ctx, &n, "SELECT @schema@.act_for($1, $2, $3, $4::jsonb, $5, $6)", by.Who, by.Why, string(act), jsonText(target), names, seqs)
		if err != nil {
			return total, fmt.Errorf("postgres: %s: %w", act, explain(err))
		}
		total += n
		after = &list[len(list)-1]
		if len(list) < page || limit > 0 && total >= limit {
			return total, nil
		}
	}
}

// Edit implements [admin.DeadLetters].
func (d *Admin) Edit(ctx context.Context, by admin.By, feed string, id postrider.ID, m postrider.Message) error {
	if err := m.Validate(); err != nil {
		return err
	}
	var headers *string
	if len(m.Headers) > 0 {
		text, err := json.Marshal(m.Headers)
		if err != nil {
			return err
		}
		s := string(text)
		headers = &s
	}
	payload := m.Payload
	if payload == nil {
		payload = []byte{}
	}
	var done bool
	err := d.change(ctx, &done, "SELECT @schema@.edit($1, $2, $3, $4, $5, $6, $7, $8, $9::jsonb, $10)",
		by.Who, by.Why, feed, id.String(), m.Type, m.Topic, m.RoutingKey, m.ContentType, headers, payload)
	if state(err) == stateBare {
		return admin.ErrBare
	}
	if err != nil {
		return fmt.Errorf("postgres: edit: %w", explain(err))
	}
	if !done {
		return fmt.Errorf("postgres: edit: feed %s has no dead or parked message %s: %w", feed, id, admin.ErrNoMessage)
	}
	return nil
}

// Audit implements [admin.Records].
func (d *Admin) Audit(ctx context.Context, feed string, before int64, limit int) ([]admin.Entry, error) {
	rows, err := d.query(ctx, "SELECT "+entryColumns+` FROM @schema@.audit
		WHERE ($1 = '' OR feed = $1) AND ($2::bigint = 0 OR n < $2::bigint) ORDER BY n DESC LIMIT $3`, feed, before, limit)
	if err != nil {
		return nil, fmt.Errorf("postgres: audit: %w", err)
	}
	entries, err := pgx.CollectRows(rows, entryOf)
	if err != nil {
		return nil, fmt.Errorf("postgres: audit: %w", explain(err))
	}
	return entries, nil
}

// Reveal implements [admin.Records].
func (d *Admin) Reveal(ctx context.Context, by admin.By, feed string, id postrider.ID) error {
	var nothing any
	if err := d.change(ctx, &nothing, "SELECT @schema@.reveal($1, $2, $3, $4)", by.Who, by.Why, feed, id.String()); err != nil {
		return fmt.Errorf("postgres: reveal: %w", explain(err))
	}
	return nil
}

// entryColumns are the columns of table audit that entryOf scans, in its order.
const entryColumns = "n, at, who, login, action, why, coalesce(feed, ''), count, target, before, after"

func entryOf(row pgx.CollectableRow) (admin.Entry, error) {
	var e admin.Entry
	err := row.Scan(&e.N, &e.At, &e.Who, &e.Login, &e.Action, &e.Why, &e.Feed, &e.Count, &e.Target, &e.Before, &e.After)
	e.At = e.At.UTC()
	return e, err
}

func (d *Admin) query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	rows, err := d.pool.Query(ctx, d.cfg.in(sql), append([]any{pgx.QueryExecModeExec}, args...)...)
	return rows, explain(err)
}

// change runs a statement that changes something, and scans the row that it returns.
func (d *Admin) change(ctx context.Context, into any, sql string, args ...any) error {
	return pgx.BeginTxFunc(ctx, d.pool, readCommitted, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, d.cfg.in(sql), append([]any{pgx.QueryExecModeExec}, args...)...).Scan(into)
	})
}

func state(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

// serverMessage returns the server's message of an error, without the SQLSTATE.
func serverMessage(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Message
	}
	return err.Error()
}

func nullTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
