package classic

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"unicode/utf8"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
)

// Audit implements [admin.Records].
func (d *Admin) Audit(ctx context.Context, feed string, before int64, limit int) ([]admin.Entry, error) {
	var w adminWhere
	if feed != "" {
		w.add(func(s *stmt) { s.sql("feed = ").word(feed) })
	}
	if before > 0 {
		w.add(func(s *stmt) { s.sql("n < ").number(before) })
	}
	entries, err := d.entries(ctx, d.db, w, "n DESC", limit)
	return entries, d.failed("audit", err)
}

// Reveal implements [admin.Records].
func (d *Admin) Reveal(ctx context.Context, by admin.By, feed string, id postrider.ID) error {
	err := transact(ctx, d.db, func(tx *sql.Tx) error {
		return d.cfg.note(ctx, tx, by, admin.Entry{Action: "reveal", Feed: feed, Count: 1, Target: map[string]any{"id": id.String()}})
	})
	return d.failed("reveal", err)
}

func (d *Admin) entries(ctx context.Context, q querier, w adminWhere, order string, limit int) (entries []admin.Entry, err error) {
	s := d.cfg.stmt("SELECT n, ", d.cfg.Dialect.micros("at"), `, who, login, action, coalesce(why, ''), coalesce(feed, ''), count,
		coalesce(target, ''), coalesce(before_change, ''), coalesce(after_change, '') FROM {audit}`).where(w...)
	err = s.sql(" ORDER BY ", order, " LIMIT ").number(int64(limit)).each(ctx, q, func(scan func(...any) error) error {
		var e admin.Entry
		var at sql.NullInt64
		var target, before, after string
		err := scan(&e.N, &at, &e.Who, &e.Login, &e.Action, &e.Why, &e.Feed, &e.Count, &target, &before, &after)
		e.At, e.Target, e.Before, e.After = moment(at), parsed(target), parsed(before), parsed(after)
		entries = append(entries, e)
		return err
	})
	return entries, err
}

// note records what was done, in the transaction in which it was.
func (c *Config) note(ctx context.Context, tx *sql.Tx, by admin.By, e admin.Entry) error {
	login := "session_user"
	if c.Dialect == MySQL {
		login = "current_user()"
	}
	_, err := tx.ExecContext(ctx, c.in(`INSERT INTO {audit} (at, who, login, action, why, feed, count, target, before_change, after_change)
		VALUES ({now}, ?, `+login+`, ?, ?, ?, ?, ?, ?, ?)`), by.Who, e.Action, by.Why, nullable(e.Feed), e.Count,
		jsonOf(e.Target), jsonOf(e.Before), jsonOf(e.After))
	return err
}

// jsonOf is a map as its column takes it. What records hold can always be encoded.
func jsonOf(m map[string]any) any {
	if len(m) == 0 {
		return nil
	}
	text, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func parsed(text string) (m map[string]any) {
	_ = json.Unmarshal([]byte(text), &m) // jsonOf wrote it, or it is empty
	return m
}

func nullable(text string) any {
	if text == "" {
		return nil
	}
	return text
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
