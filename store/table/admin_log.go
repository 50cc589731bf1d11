package table

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// Messages implements [admin.Log]. Where a table is ordered by time, messages of the same moment are not torn apart, and a page can be
// longer than asked for.
func (d *Admin) Messages(ctx context.Context, feed string, filter admin.Filter, before int64, limit int) (page admin.LogPage, err error) {
	filter.Feed, filter.Error, filter.Head = feed, "", false
	err = d.look(ctx, func(tx *sql.Tx) error {
		f, err := d.named(ctx, tx, feed)
		if errors.Is(err, admin.ErrNoFeed) {
			return nil
		}
		if err != nil {
			return err
		}
		if onlyDeferred(filter.Statuses) {
			page, err = d.deferredMessages(ctx, tx, f, filter, before, limit)
			return err
		}
		s, possible, err := d.newSearch(ctx, tx, f, &filter, before)
		if err != nil || !possible {
			return err
		}
		page, err = s.page(ctx, limit)
		return err
	})
	if err != nil {
		return admin.LogPage{}, d.failed("messages", err)
	}
	if filter.ID.IsZero() {
		for i := range page.Items {
			page.Items[i].Payload = nil
		}
	}
	return page, nil
}

// onlyDeferred reports whether nothing is asked for but what is deferred.
func onlyDeferred(statuses []feeds.Status) bool {
	return len(statuses) > 0 && !slices.ContainsFunc(statuses, func(s feeds.Status) bool { return !slices.Contains(deferredStatuses, s) })
}

// deferredMessages returns what is deferred, newest first.
func (d *Admin) deferredMessages(ctx context.Context, q sqltext.Querier, f *served, filter admin.Filter, before int64, limit int) (page admin.LogPage, err error) {
	var after *place
	if before > 0 {
		after = &place{seq: before}
	}
	canaries := filter.Type == feeds.CanaryType || !filter.ID.IsZero()
	err = d.walk(ctx, q, f, filter, after, true, func(l *deadLetter) bool {
		if n := len(page.Items); n >= limit && page.Items[n-1].Seq != l.Seq {
			page.Next, page.Until = page.Items[n-1].Seq, page.Items[n-1].EnqueuedAt
			return false
		}
		if canaries || l.Type != feeds.CanaryType {
			page.Items = append(page.Items, loggedOf(&l.Deferred))
		}
		return true
	})
	return page, err
}

func loggedOf(d *feeds.Deferred) admin.Logged {
	return admin.Logged{
		Message: d.Message, Feed: d.Feed, Seq: d.Seq, Shard: d.Shard, Status: d.Status, Attempts: d.Attempts, EnqueuedAt: d.EnqueuedAt,
		AvailableAt: d.AvailableAt, LastError: d.LastError, Size: len(d.Payload),
	}
}

// foundRow is a row of the table, and what that says of it.
type foundRow struct {
	rowID   string
	seq     int64
	status  feeds.Status // not looking at what is deferred
	settled time.Time
}

// standings returns how far the messages of rows have come, in the order of the rows.
func (d *Admin) standings(ctx context.Context, q sqltext.Querier, f *served, rows []foundRow) ([]feeds.Deferred, error) {
	all := make([]feeds.Deferred, 0, len(rows))
	for part := range slices.Chunk(rows, chunk) {
		ids := make([]string, len(part))
		for i := range part {
			ids[i] = part[i].rowID
		}
		records, err := f.t.load(ctx, q, ids)
		if err != nil {
			return nil, err
		}
		rows, err := deferredRows(ctx, q, d.cfg.stmt("SELECT ", deferredColumns(d.cfg.Dialect), " FROM {deferred} a WHERE a.feed = ").Word(f.name).SQL(" AND ").
			Words("a.row_id", ids))
		if err != nil {
			return nil, err
		}
		byRow := make(map[string]*deferredRow, len(rows))
		for i := range rows {
			byRow[rows[i].rowID] = &rows[i]
		}
		for i := range part {
			r, ok := records[part[i].rowID]
			if !ok {
				continue // deleted a moment ago
			}
			one := feeds.Deferred{
				Message: r.Message, Feed: f.name, Shard: r.shard, Seq: r.seq, Status: part[i].status, EnqueuedAt: r.enqueued,
			}
			if a := byRow[r.rowID]; a != nil {
				one = a.with(r.Message, f.name)
				one.Seq, one.EnqueuedAt = r.seq, r.enqueued
			}
			all = append(all, one)
		}
	}
	slices.SortStableFunc(all, func(a, b feeds.Deferred) int { return cmp.Compare(b.Seq, a.Seq) })
	return all, nil
}
