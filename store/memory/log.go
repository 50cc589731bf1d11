package memory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
)

var _ admin.Log = (*DB)(nil)

// Messages implements [admin.Log]. It searches the whole log.
func (s *DB) Messages(ctx context.Context, feed string, filter admin.Filter, before int64, limit int) (admin.LogPage, error) {
	var page admin.LogPage
	filter.Feed, filter.Error = feed, ""
	err := s.locked(ctx, func(time.Time) error {
		l := s.ledgers[feed]
		if l == nil {
			return nil
		}
		for i := range s.shards {
			for j := range s.shards[i].entries {
				e := &s.shards[i].entries[j]
				if before > 0 && e.seq >= before {
					continue
				}
				if d := l.stateOf(feed, i, s.shards[i].base+j, e); filter.Matches(&d) {
					m := clone(d.Message)
					if filter.ID.IsZero() {
						m.Payload = nil
					}
					page.Items = append(page.Items, admin.Logged{
						Message: m, Size: len(d.Payload), Feed: feed, Seq: d.Seq, Shard: d.Shard, Status: d.Status, Attempts: d.Attempts,
						EnqueuedAt: d.EnqueuedAt, AvailableAt: d.AvailableAt, LastError: d.LastError,
					})
				}
			}
		}
		return nil
	})
	slices.SortFunc(page.Items, func(a, b admin.Logged) int { return cmp.Compare(b.Seq, a.Seq) })
	if len(page.Items) > limit {
		page.Items = page.Items[:limit]
		page.Next, page.Until = page.Items[limit-1].Seq, page.Items[limit-1].EnqueuedAt
	}
	return page, err
}

// stateOf returns the state of a message of the log in the feed.
func (l *ledger) stateOf(feed string, shard, position int, e *entry) feeds.Deferred {
	if d := l.deferred.get(e.seq); d != nil {
		now := *d
		now.Message = e.Message // the content from the log: the deferred message may be edited, or stored without content
		return now
	}
	d := feeds.Deferred{
		Message: e.Message, Feed: feed, Seq: e.seq, Shard: shard, Status: feeds.StatusPending, EnqueuedAt: e.at,
	}
	if position < l.leases[shard].settled {
		d.Status = feeds.StatusPublished
	}
	return d
}

// Journey implements [admin.Log]. It does not know when a message was settled.
func (s *DB) Journey(ctx context.Context, id postrider.ID) (*admin.Journey, error) {
	j := &admin.Journey{Message: postrider.Message{ID: id}, Feeds: []admin.Leg{}, Receipts: []admin.Receipt{}, Records: []admin.Entry{}}
	err := s.locked(ctx, func(time.Time) error {
		s.followLog(j)
		for _, d := range s.choose(admin.Filter{ID: id}) {
			j.Feeds = slices.DeleteFunc(j.Feeds, func(l admin.Leg) bool { return l.Feed == d.Feed })
			j.Feeds = append(j.Feeds, legOf(d))
			if !j.InLog {
				j.Message, j.Seq, j.EnqueuedAt = clone(d.Message), d.Seq, d.EnqueuedAt
			}
		}
		for _, name := range slices.Sorted(maps.Keys(s.inboxes)) {
			r := s.inboxes[name]
			if e := r.ids[id]; e != nil && e.open == nil && !r.deferred.holds(id) {
				j.Receipts = append(j.Receipts, admin.Receipt{Consumer: name, At: e.at})
			}
		}
		for _, e := range s.records {
			if e.Target["id"] == id.String() || e.Before["id"] == id.String() {
				j.Records = append(j.Records, e)
			}
		}
		return nil
	})
	if err == nil && !j.InLog && len(j.Feeds)+len(j.Receipts)+len(j.Records) == 0 {
		err = fmt.Errorf("memory: message %s: %w", id, admin.ErrNoMessage)
	}
	if err != nil {
		return nil, err
	}
	slices.SortFunc(j.Feeds, func(a, b admin.Leg) int { return cmp.Compare(a.Feed, b.Feed) })
	return j, nil
}

// followLog adds what the log has about a message. The caller holds the lock.
func (s *DB) followLog(j *admin.Journey) {
	for i := range s.shards {
		for k := range s.shards[i].entries {
			e := &s.shards[i].entries[k]
			if e.ID != j.Message.ID {
				continue
			}
			j.Message, j.InLog, j.Seq, j.EnqueuedAt = clone(e.Message), true, e.seq, e.at
			for name, l := range s.ledgers {
				d := l.stateOf(name, i, s.shards[i].base+k, e)
				leg := legOf(&d)
				_, excluded := l.excluded[e.seq]
				leg.Excluded = excluded && d.Status == feeds.StatusPending
				j.Feeds = append(j.Feeds, leg)
			}
			return
		}
	}
}

func legOf(d *feeds.Deferred) admin.Leg {
	return admin.Leg{
		Feed: d.Feed, Status: d.Status, Blocking: d.Blocking, Attempts: d.Attempts, LastError: d.LastError, DeferredAt: d.DeferredAt,
		TriedAt: d.TriedAt, AvailableAt: d.AvailableAt,
	}
}
