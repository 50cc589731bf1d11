package deadletters

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// actsAtOnce is how many messages are decided about in one transaction.
const actsAtOnce = 100

// Act implements [admin.DeadLetters]. Where there is nothing to do, nothing is recorded.
func (l *DeadLetters) Act(ctx context.Context, by admin.By, act admin.Act, filter admin.Filter, limit int) (done int, err error) {
	if act.From() == nil {
		return 0, fmt.Errorf("table: there is no act %q", act)
	}
	var chosen []int64
	err = l.Walk(ctx, l.db, filter, nil, false, func(d *feeds.Deferred) bool {
		if slices.Contains(act.From(), d.Status) {
			chosen = append(chosen, d.Seq)
		}
		return limit <= 0 || len(chosen) < limit
	})
	for seqs := range slices.Chunk(chosen, actsAtOnce) {
		if err != nil {
			break
		}
		n := 0
		err = sqltext.Transact(ctx, l.db, func(tx *sql.Tx) (err error) {
			n, err = l.act(ctx, tx, by, act, filter, seqs)
			return err
		})
		done += n
	}
	if err != nil {
		return done, fmt.Errorf("table: %s: %w", act, err)
	}
	return done, nil
}

// deferredOf is a message together with where it stands.
type deferredOf struct {
	feeds.Deferred
	consumer int64
	hash     string
}

// lockDeferred reads messages again, with their consumers locked.
func (l *DeadLetters) lockDeferred(ctx context.Context, tx *sql.Tx, seqs []int64) ([]deferredOf, error) {
	var numbers []int64
	err := l.own.Stmt("SELECT DISTINCT consumer FROM {inbox_deferred} WHERE seq IN (", Joined(seqs), ") ORDER BY consumer").
		Each(ctx, tx, func(scan func(...any) error) error {
			var n int64
			err := scan(&n)
			numbers = append(numbers, n)
			return err
		})
	if err != nil {
		return nil, err
	}
	for _, n := range numbers {
		if err := Lock(ctx, tx, l.own, n); err != nil {
			return nil, err
		}
	}
	var rows []deferredOf
	err = l.own.Stmt("SELECT a.consumer, a.key_hash, ", Fields(true), " FROM {inbox_deferred} a JOIN {consumers} c ON c.n = a.consumer ",
		"WHERE a.seq IN (", Joined(seqs), ") ORDER BY c.name, a.seq").Each(ctx, tx, func(scan func(...any) error) error {
		var r deferredOf
		var hash []byte
		var err error
		r.Deferred, err = Scan(func(into ...any) error { return scan(append([]any{&r.consumer, &hash}, into...)...) })
		r.hash = string(hash)
		rows = append(rows, r)
		return err
	})
	return rows, err
}

func (l *DeadLetters) act(ctx context.Context, tx *sql.Tx, by admin.By, act admin.Act, filter admin.Filter, seqs []int64) (int, error) {
	rows, err := l.lockDeferred(ctx, tx, seqs)
	if err != nil {
		return 0, err
	}
	rows = slices.DeleteFunc(rows, func(r deferredOf) bool { return !slices.Contains(act.From(), r.Status) })
	if len(rows) == 0 {
		return 0, nil
	}
	e := admin.Entry{Action: string(act), Feed: filter.Feed, Count: len(rows), Before: describeDeferred(rows)}
	text, _ := json.Marshal(filter) // all its fields can be encoded
	_ = json.Unmarshal(text, &e.Target)
	if len(rows) == 1 {
		e.Feed = rows[0].Feed
	}
	for i := range rows {
		if err := l.decide(ctx, tx, act, &rows[i]); err != nil {
			return 0, err
		}
	}
	if act != admin.Discard {
		e.After = describeDeferred(rows)
	}
	return len(rows), l.own.Note(ctx, tx, by, e)
}

// decide does one act to one message.
func (l *DeadLetters) decide(ctx context.Context, tx *sql.Tx, act admin.Act, r *deferredOf) error {
	var err error
	switch act {
	case admin.Retry:
		r.Status, r.Attempts = feeds.StatusRetry, 0
		_, err = l.own.Stmt(Again).Number(r.Seq).Exec(ctx, tx)
		return err
	case admin.Discard:
		_, err = l.own.Stmt("DELETE FROM {inbox_deferred} WHERE seq = ").Number(r.Seq).Exec(ctx, tx)
	default:
		r.Status = feeds.StatusDead
		if act == admin.Park {
			r.Status = feeds.StatusParked
		}
		_, err = l.own.Stmt("UPDATE {inbox_deferred} SET blocking = 0, available_at = NULL, status = ").Text(string(r.Status)).
			SQL(" WHERE seq = ").Number(r.Seq).Exec(ctx, tx)
	}
	if err == nil && r.Blocking {
		r.Blocking = false
		err = Promote(ctx, tx, l.own, r.consumer, r.hash)
	}
	return err
}

// Edit implements [admin.DeadLetters].
func (l *DeadLetters) Edit(ctx context.Context, by admin.By, feed string, id postrider.ID, edited postrider.Message) error {
	err := sqltext.Transact(ctx, l.db, func(tx *sql.Tx) error {
		var rows []deferredOf
		var seq int64
		err := l.own.Stmt("SELECT a.seq FROM {inbox_deferred} a JOIN {consumers} c ON c.n = a.consumer WHERE c.name = ").
			Word(inbox.ConsumerOf(feed)).SQL(" AND a.message_id = ").Word(string(id[:])).Row(ctx, tx).Scan(&seq)
		if err == nil {
			rows, err = l.lockDeferred(ctx, tx, []int64{seq})
		}
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if len(rows) == 0 || rows[0].Status != feeds.StatusDead && rows[0].Status != feeds.StatusParked {
			return fmt.Errorf("feed %s has no dead or parked message %s: %w", feed, id, admin.ErrNoMessage)
		}
		e := admin.Entry{Action: "edit", Feed: feed, Count: 1, Target: map[string]any{"id": id.String()}, Before: describeDeferred(rows)}
		m := &rows[0].Message
		m.Type, m.Topic, m.RoutingKey, m.ContentType = edited.Type, edited.Topic, edited.RoutingKey, edited.ContentType
		m.Headers, m.Payload = edited.Headers, edited.Payload
		if err := m.Validate(); err != nil {
			return err
		}
		doc, err := Encode(m)
		if err != nil {
			return err
		}
		_, err = l.own.Stmt("UPDATE {inbox_deferred} SET status = 'retry', attempts = 0, available_at = {now}, message = ").Arg(doc).SQL(", payload = ").
			Arg(append([]byte{}, m.Payload...)).SQL(" WHERE seq = ").Number(seq).Exec(ctx, tx)
		if err != nil {
			return err
		}
		rows[0].Status, rows[0].Attempts = feeds.StatusRetry, 0
		e.After = describeDeferred(rows)
		return l.own.Note(ctx, tx, by, e)
	})
	if err != nil {
		return fmt.Errorf("table: edit: %w", err)
	}
	return nil
}

// describeDeferred is what a record says of messages: of one, what matters of it; of several, how many have which status.
func describeDeferred(rows []deferredOf) map[string]any {
	if len(rows) > 1 {
		counts := make(map[string]any)
		for _, r := range rows {
			n, _ := counts[string(r.Status)].(int)
			counts[string(r.Status)] = n + 1
		}
		return counts
	}
	d := &rows[0].Deferred
	payload := string(d.Payload)
	if !utf8.ValidString(payload) {
		payload = base64.StdEncoding.EncodeToString(d.Payload)
	}
	return map[string]any{
		"id": d.ID.String(), "type": d.Type, "topic": d.Topic, "status": string(d.Status), "attempts": d.Attempts, "last_error": d.LastError,
		"payload": payload,
	}
}
