package table

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// List implements [admin.DeadLetters].
func (d *Admin) List(ctx context.Context, filter admin.Filter, after *feeds.Deferred, limit int) ([]feeds.Deferred, error) {
	var list []feeds.Deferred
	if after == nil || inbox.ConsumerOf(after.Feed) == "" { // consumers come behind the feeds
		behind := after
		after = nil
		err := d.deadLetters(ctx, filter, behind, func(l *deadLetter) bool {
			if len(list) < limit {
				list = append(list, l.Deferred)
			}
			return len(list) < limit
		})
		if err != nil {
			return nil, d.failed("list", err)
		}
	}
	if d.inbox == nil || len(list) >= limit {
		return list, nil
	}
	more, err := d.inbox.List(ctx, filter, after, limit-len(list))
	return append(list, more...), err
}

// deadLetters visits what the feeds have deferred, one feed after the other, behind a message if there is one.
func (d *Admin) deadLetters(ctx context.Context, filter admin.Filter, after *feeds.Deferred, visit func(*deadLetter) bool) error {
	names, err := d.feeds(ctx, d.db)
	if err != nil {
		return err
	}
	more := true
	for _, f := range names {
		var behind *place
		if after != nil {
			if f.name < after.Feed {
				continue
			}
			if f.name == after.Feed {
				behind = &place{after.Shard, after.Seq}
			}
		}
		err := d.walk(ctx, d.db, f, filter, behind, false, func(l *deadLetter) bool {
			more = visit(l)
			return more
		})
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// deferredStatuses are the statuses of messages that are deferred.
var deferredStatuses = []feeds.Status{
	feeds.StatusScheduled, feeds.StatusRetry, feeds.StatusHeld, feeds.StatusWaiting, feeds.StatusDead, feeds.StatusParked,
}

// Count implements [admin.DeadLetters].
func (d *Admin) Count(ctx context.Context, filter admin.Filter, limit int) (map[feeds.Status]int, error) {
	counts, err := d.count(ctx, filter, limit)
	if err != nil || d.inbox == nil {
		return counts, d.failed("count", err)
	}
	more, err := d.inbox.Count(ctx, filter, limit)
	for status, n := range more {
		if counts[status] += n; limit > 0 {
			counts[status] = min(counts[status], limit)
		}
	}
	return counts, err
}

// count counts what the feeds have deferred. Where the filter is about what stands in the messages themselves, they are looked at one
// by one.
func (d *Admin) count(ctx context.Context, filter admin.Filter, limit int) (map[feeds.Status]int, error) {
	counts := make(map[feeds.Status]int)
	statuses := filter.Statuses
	if len(statuses) == 0 {
		statuses = deferredStatuses
	}
	if filter.Type+filter.Topic+filter.Tenant+filter.Error != "" || !filter.ID.IsZero() {
		err := d.deadLetters(ctx, filter, nil, func(l *deadLetter) bool {
			if limit == 0 || counts[l.Status] < limit {
				counts[l.Status]++
			}
			return limit == 0 || slices.ContainsFunc(statuses, func(s feeds.Status) bool { return counts[s] < limit })
		})
		return counts, err
	}
	names, err := d.feeds(ctx, d.db)
	if err != nil {
		return nil, err
	}
	for _, f := range names {
		if f.name == "" || filter.Feed != "" && filter.Feed != f.name {
			continue
		}
		for _, status := range statuses {
			filter := filter
			filter.Statuses = []feeds.Status{status}
			n, err := d.countDeferred(ctx, d.db, f, &filter, limit)
			if err != nil {
				return nil, err
			}
			if counts[status] += n; limit > 0 {
				counts[status] = min(counts[status], limit)
			}
		}
	}
	maps.DeleteFunc(counts, func(_ feeds.Status, n int) bool { return n == 0 })
	return counts, nil
}

// countDeferred counts what is deferred, up to a limit unless that is 0.
func (d *Admin) countDeferred(ctx context.Context, q sqltext.Querier, f *served, filter *admin.Filter, limit int) (n int, err error) {
	w, possible, err := d.deferredWhere(ctx, q, f, filter)
	if err != nil || !possible {
		return 0, err
	}
	st := d.cfg.stmt("SELECT count(*) FROM (SELECT 1 FROM {deferred} a").Add(where(w...))
	if limit > 0 {
		st.SQL(" LIMIT ").Number(int64(limit))
	}
	err = st.SQL(") x").Row(ctx, q).Scan(&n)
	return n, err
}

// Groups implements [admin.DeadLetters].
func (d *Admin) Groups(ctx context.Context, filter admin.Filter, sample, limit int) (admin.Groups, error) {
	var ours, theirs []feeds.Deferred
	names, err := d.feeds(ctx, d.db)
	for _, f := range names {
		var some []feeds.Deferred
		if err == nil {
			err = d.walk(ctx, d.db, f, filter, nil, true, func(l *deadLetter) bool {
				l.Payload, l.Headers = nil, nil
				some = append(some, l.Deferred)
				return len(some) <= sample
			})
		}
		ours, _ = newestOf(ours, some, sample+1)
	}
	if err == nil && d.inbox != nil {
		err = d.inbox.Walk(ctx, d.db, filter, nil, true, func(l *feeds.Deferred) bool {
			theirs = append(theirs, *l)
			return len(theirs) <= sample
		})
	}
	if err != nil {
		return admin.Groups{}, d.failed("groups", err)
	}
	found, all := newestOf(ours, theirs, sample)
	return admin.Groups{Sampled: len(found), All: all, Groups: admin.GroupErrors(found, limit)}, nil
}

// newestOf returns the newest of what feeds and consumers have deferred, and whether nothing was left out.
func newestOf(a, b []feeds.Deferred, most int) ([]feeds.Deferred, bool) {
	all := append(a, b...)
	slices.SortStableFunc(all, func(a, b feeds.Deferred) int { return time.Time.Compare(b.DeferredAt, a.DeferredAt) })
	return all[:min(len(all), most)], len(all) <= most
}
