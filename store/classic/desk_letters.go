package classic

import (
	"context"
	"slices"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/desk"
	"github.com/postrider/postrider/inbox"
)

// List implements [desk.Letters].
func (d *Desk) List(ctx context.Context, filter desk.Filter, after *postrider.Deferred, limit int) ([]postrider.Deferred, error) {
	var list []postrider.Deferred
	if after == nil || inbox.ConsumerOf(after.Feed) == "" { // consumers come behind the feed
		var behind *place
		if after != nil {
			behind, after = &place{after.Shard, after.Seq}, nil
		}
		err := d.letters(ctx, filter, behind, false, func(l *letter) bool {
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

func (d *Desk) letters(ctx context.Context, filter desk.Filter, after *place, newest bool, visit func(*letter) bool) error {
	f, err := d.served(ctx, d.db)
	if err != nil {
		return err
	}
	return d.walk(ctx, d.db, f, filter, after, newest, visit)
}

// setAside are the statuses of messages that are set aside.
var setAside = []postrider.Status{
	postrider.StatusScheduled, postrider.StatusRetry, postrider.StatusHeld, postrider.StatusWaiting, postrider.StatusDead, postrider.StatusParked,
}

// Count implements [desk.Letters].
func (d *Desk) Count(ctx context.Context, filter desk.Filter, limit int) (map[postrider.Status]int, error) {
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

// count counts what the feed has set aside. Where the filter is about what stands in the messages themselves, they are looked at one
// by one.
func (d *Desk) count(ctx context.Context, filter desk.Filter, limit int) (map[postrider.Status]int, error) {
	counts := make(map[postrider.Status]int)
	statuses := filter.Statuses
	if len(statuses) == 0 {
		statuses = setAside
	}
	if filter.Type+filter.Topic+filter.Tenant+filter.Error != "" || !filter.ID.IsZero() {
		err := d.letters(ctx, filter, nil, false, func(l *letter) bool {
			if limit == 0 || counts[l.Status] < limit {
				counts[l.Status]++
			}
			return limit == 0 || slices.ContainsFunc(statuses, func(s postrider.Status) bool { return counts[s] < limit })
		})
		return counts, err
	}
	f, err := d.served(ctx, d.db)
	if err != nil || f.name == "" || filter.Feed != "" && filter.Feed != f.name {
		return counts, err
	}
	for _, status := range statuses {
		filter.Statuses = []postrider.Status{status}
		n, err := d.countAside(ctx, d.db, f, &filter, limit)
		if err != nil {
			return nil, err
		}
		if n > 0 {
			counts[status] = n
		}
	}
	return counts, nil
}

// countAside counts what is set aside, up to a limit unless that is 0.
func (d *Desk) countAside(ctx context.Context, q querier, f *served, filter *desk.Filter, limit int) (n int, err error) {
	w, possible, err := d.asideWhere(ctx, q, f, filter)
	if err != nil || !possible {
		return 0, err
	}
	st := d.cfg.stmt("SELECT count(*) FROM (SELECT 1 FROM {aside} a").where(w...)
	if limit > 0 {
		st.sql(" LIMIT ").number(int64(limit))
	}
	err = st.sql(") x").row(ctx, q).Scan(&n)
	return n, err
}

// Groups implements [desk.Letters].
func (d *Desk) Groups(ctx context.Context, filter desk.Filter, sample, limit int) (desk.Groups, error) {
	var ours, theirs []postrider.Deferred
	err := d.letters(ctx, filter, nil, true, func(l *letter) bool {
		l.Payload, l.Headers = nil, nil
		ours = append(ours, l.Deferred)
		return len(ours) <= sample
	})
	if err == nil && d.inbox != nil {
		err = d.inbox.walk(ctx, d.db, filter, nil, true, func(l *postrider.Deferred) bool {
			theirs = append(theirs, *l)
			return len(theirs) <= sample
		})
	}
	if err != nil {
		return desk.Groups{}, d.failed("groups", err)
	}
	found, all := newestOf(ours, theirs, sample)
	return desk.Groups{Sampled: len(found), All: all, Groups: desk.GroupErrors(found, limit)}, nil
}
