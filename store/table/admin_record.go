package table

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"unicode/utf8"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// Audit implements [admin.Records].
func (d *Admin) Audit(ctx context.Context, feed string, before int64, limit int) ([]admin.Entry, error) {
	var w adminWhere
	if feed != "" {
		w.add(func(s *sqltext.Stmt) { s.SQL("feed = ").Word(feed) })
	}
	if before > 0 {
		w.add(func(s *sqltext.Stmt) { s.SQL("n < ").Number(before) })
	}
	entries, err := d.entries(ctx, d.db, w, "n DESC", limit)
	return entries, d.failed("audit", err)
}

// Reveal implements [admin.Records].
func (d *Admin) Reveal(ctx context.Context, by admin.By, feed string, id postrider.ID) error {
	err := sqltext.Transact(ctx, d.db, func(tx *sql.Tx) error {
		return d.cfg.own().Note(ctx, tx, by, admin.Entry{Action: "reveal", Feed: feed, Count: 1, Target: map[string]any{"id": id.String()}})
	})
	return d.failed("reveal", err)
}

func (d *Admin) entries(ctx context.Context, q sqltext.Querier, w adminWhere, order string, limit int) (entries []admin.Entry, err error) {
	s := d.cfg.stmt("SELECT n, ", d.cfg.Dialect.Micros("at"), `, who, login, action, coalesce(why, ''), coalesce(feed, ''), count,
		coalesce(target, ''), coalesce(before_change, ''), coalesce(after_change, '') FROM {audit}`).Add(where(w...))
	err = s.SQL(" ORDER BY ", order, " LIMIT ").Number(int64(limit)).Each(ctx, q, func(scan func(...any) error) error {
		var e admin.Entry
		var at sql.NullInt64
		var target, before, after string
		err := scan(&e.N, &at, &e.Who, &e.Login, &e.Action, &e.Why, &e.Feed, &e.Count, &target, &before, &after)
		e.At, e.Target, e.Before, e.After = sqltext.Moment(at), parsed(target), parsed(before), parsed(after)
		entries = append(entries, e)
		return err
	})
	return entries, err
}

func parsed(text string) (m map[string]any) {
	_ = json.Unmarshal([]byte(text), &m) // jsonOf wrote it, or it is empty
	return m
}

// describe is what a record says of messages: of one, what matters of it; of several, how many have which status.
func describe(list []feeds.Deferred) map[string]any {
	if len(list) != 1 {
		counts := make(map[string]any)
		for i := range list {
			n, _ := counts[string(list[i].Status)].(int)
			counts[string(list[i].Status)] = n + 1
		}
		return counts
	}
	m := &list[0]
	payload := string(m.Payload)
	if !utf8.ValidString(payload) {
		payload = base64.StdEncoding.EncodeToString(m.Payload)
	}
	return map[string]any{
		"id": m.ID.String(), "type": m.Type, "topic": m.Topic, "key": m.OrderKey(), "routing_key": m.RoutingKey, "content_type": m.ContentType,
		"status": string(m.Status), "attempts": m.Attempts, "last_error": m.LastError, "payload": payload,
	}
}

func describeFilter(filter admin.Filter) map[string]any {
	text, err := json.Marshal(filter)
	if err != nil {
		panic(err)
	}
	var target map[string]any
	if err := json.Unmarshal(text, &target); err != nil {
		panic(err)
	}
	return target
}
