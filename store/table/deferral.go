package table

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// maxCause is how many bytes of an error are kept.
const maxCause = 2000

// lastDay is the latest time that all databases know.
var lastDay = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// setting is a message that is to be deferred.
type setting struct {
	*feeds.Deferral
	inFlight
	due bool // at once: it waits for nothing
}

func (s *setting) waits() int {
	if s.Status == feeds.StatusWaiting {
		return 1
	}
	return 0
}

// Defer implements [feeds.Deferrer].
func (f *feed) Defer(ctx context.Context, msgs []feeds.Deferral) error {
	var shards []int
	var all []setting
	seen := make(map[string]bool)
	for i := range msgs {
		h, err := f.findInFlight(msgs[i].Batch, msgs[i].Index)
		if err != nil {
			return fmt.Errorf("table: defer: %w", err)
		}
		switch msgs[i].Status {
		case feeds.StatusRetry, feeds.StatusHeld, feeds.StatusDead, feeds.StatusScheduled, feeds.StatusWaiting:
		default:
			return fmt.Errorf("table: defer: a message cannot be deferred as %q", msgs[i].Status)
		}
		if msgs[i].Bare {
			h.key = "" // the row itself has the content; what stands behind it goes on
		}
		shards = append(shards, msgs[i].Batch.Shard)
		if !seen[h.rowID] {
			seen[h.rowID] = true
			all = append(all, setting{Deferral: &msgs[i], inFlight: h})
		}
	}
	err := f.owning(ctx, shards, func(tx *sql.Tx) error { return f.writeDeferrals(ctx, tx, slices.Clone(all)) })
	if err != nil {
		return fmt.Errorf("table: defer: %w", err)
	}
	f.markDeferred(msgs)
	return nil
}

// writeDeferrals writes what is not deferred yet.
func (f *feed) writeDeferrals(ctx context.Context, tx sqltext.Querier, all []setting) error {
	all, err := f.notYetDeferred(ctx, tx, all)
	if err != nil {
		return err
	}
	slices.SortStableFunc(all, func(a, b setting) int { // first what others wait for
		return cmp.Or(cmp.Compare(a.waits(), b.waits()), cmp.Compare(a.seq, b.seq), cmp.Compare(a.Index, b.Index))
	})
	if err := f.distinct(ctx, tx, all); err != nil {
		return err
	}
	if err := f.findDue(ctx, tx, all); err != nil {
		return err
	}
	var rowIDs []string
	for part := range slices.Chunk(all, chunk) {
		if err := f.insertDeferred(ctx, tx, part); err != nil {
			return err
		}
		for _, s := range part {
			rowIDs = append(rowIDs, s.rowID)
		}
	}
	return f.t.mirror(ctx, tx, f.name, rowIDs)
}

// notYetDeferred leaves out what is deferred already.
func (f *feed) notYetDeferred(ctx context.Context, tx sqltext.Querier, all []setting) ([]setting, error) {
	known := make(map[string]bool)
	for part := range slices.Chunk(all, chunk) {
		var rowIDs []string
		for _, s := range part {
			rowIDs = append(rowIDs, s.rowID)
		}
		s := f.cfg().stmt("SELECT row_id FROM {deferred} WHERE feed = ").Word(f.name).SQL(" AND ").Words("row_id", rowIDs)
		err := s.Each(ctx, tx, func(scan func(...any) error) error {
			var rowID string
			err := scan(&rowID)
			known[rowID] = true
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(all, func(s setting) bool { return known[s.rowID] }), nil
}

// findDue finds those that were to wait, and have nothing to wait for.
func (f *feed) findDue(ctx context.Context, tx sqltext.Querier, all []setting) error {
	var keys []shardKey
	for _, s := range all {
		if k := (shardKey{s.Batch.Shard, s.key}); s.Status == feeds.StatusWaiting && s.key != "" && !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	heads, err := f.cfg().heads(ctx, tx, f.name, keys)
	if err != nil {
		return err
	}
	first := make(map[shardKey]int64)
	for k, head := range heads {
		first[k] = head.seq
	}
	for i := range all {
		s := &all[i]
		k := shardKey{s.Batch.Shard, s.key}
		head, blocked := first[k]
		ahead := blocked && head < s.seq
		s.due = s.Status == feeds.StatusWaiting && !ahead
		if s.Blocking && s.key != "" && !ahead {
			first[k] = s.seq
		}
	}
	return nil
}

func (f *feed) insertDeferred(ctx context.Context, tx sqltext.Querier, part []setting) error {
	q := f.cfg().stmt(`INSERT INTO {deferred} (feed, row_id, shard, seq, order_key, status, blocking, attempts, priority, last_error,
		enqueued_at, deferred_at, name, name_hash, tried_at, sent_at, available_at) VALUES `)
	for i, s := range part {
		if i > 0 {
			q.SQL(", ")
		}
		q.SQL("(").Word(f.name).SQL(", ").Word(s.rowID).SQL(", ").Number(int64(s.Batch.Shard)).SQL(", ").Number(s.seq).SQL(", ")
		if s.key == "" {
			q.SQL("NULL")
		} else {
			q.Word(s.key)
		}
		status, blocking, tried, due := s.Status, int64(0), "NULL", "NULL"
		if s.Blocking {
			blocking = 1
		}
		if s.Status == feeds.StatusRetry || s.Status == feeds.StatusDead || s.Status == feeds.StatusHeld && s.Cause != "" {
			tried = "{now}"
		}
		if s.due {
			status, due = feeds.StatusRetry, "{now}"
		}
		q.SQL(", ").Text(string(status)).SQL(", ").Number(blocking).SQL(", ").Number(int64(s.Attempts)).SQL(", ").Number(int64(s.priority))
		q.SQL(", ").Add(causeText(s.Cause)).SQL(", ").At(s.enqueued).SQL(", {now}, ")
		if s.Status == feeds.StatusHeld {
			q.Text(storable(s.Name)).SQL(", ").Word(nameHash(s.Name))
		} else {
			q.SQL("NULL, NULL")
		}
		ago(q.SQL(", ", tried, ", "), s.Sent).SQL(", ")
		switch {
		case s.Status == feeds.StatusRetry:
			q.Later("{now}", max(s.Delay, 0))
		case s.Status == feeds.StatusScheduled && s.after.After(lastDay):
			q.At(lastDay)
		case s.Status == feeds.StatusScheduled && !s.after.IsZero():
			q.At(s.after)
		case s.Status == feeds.StatusScheduled:
			q.SQL("{now}")
		default:
			q.SQL(due)
		}
		q.SQL(")")
	}
	_, err := q.Exec(ctx, tx)
	return err
}

// cause adds an error's text, made fit for a column: destinations may say anything.
func causeText(text string) func(*sqltext.Stmt) *sqltext.Stmt {
	return func(s *sqltext.Stmt) *sqltext.Stmt {
		if len(text) > maxCause {
			text = text[:maxCause]
		}
		if text = storable(text); text == "" {
			return s.SQL("NULL")
		}
		return s.Text(text)
	}
}

// storable leaves out what a column of text cannot take.
func storable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == 0 || r == utf8.RuneError {
			return -1
		}
		return r
	}, text)
}
