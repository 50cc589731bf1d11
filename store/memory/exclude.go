package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
)

var _ admin.Excluder = (*DB)(nil)

// exclusion is a message that an operator handled before the feed has passed it.
type exclusion struct {
	id              postrider.ID
	shard, position int
}

// Exclude implements [admin.Excluder].
func (s *DB) Exclude(ctx context.Context, by admin.By, act admin.Act, feed string, id postrider.ID) error {
	if act != admin.Park && act != admin.Discard {
		return fmt.Errorf("memory: a message of the log cannot be excluded by the act %q", act)
	}
	return s.withFeed(ctx, feed, func(l *ledger, now time.Time) error {
		e, shard, position := s.locate(id)
		if e == nil {
			return fmt.Errorf("memory: message %s: %w", id, admin.ErrNoMessage)
		}
		l.forgetPassed()
		_, known := l.excluded[e.seq]
		switch {
		case l.deferred.get(e.seq) != nil:
			return admin.ErrDeferred
		case known:
			return nil
		case position < l.leases[shard].settled:
			return admin.ErrPassed
		case len(l.excluded) >= admin.MaxExcluded:
			return admin.ErrTooManyExcluded
		}
		was := l.stateOf(feed, shard, position, e)
		entry := entryOf(by, string(act), feed, now)
		entry.Count, entry.Target, entry.Before = 1, map[string]any{"id": id.String()}, describe([]*feeds.Deferred{&was})
		if act == admin.Park {
			d := copyOf(&was)
			d.Status, d.DeferredAt = feeds.StatusParked, now
			l.deferred.insert(&d)
			entry.After = describe([]*feeds.Deferred{&d})
		}
		l.exclude(e.seq, exclusion{id, shard, position})
		s.record(entry)
		return nil
	})
}

func (l *ledger) exclude(seq int64, x exclusion) {
	if l.excluded == nil {
		l.excluded = make(map[int64]exclusion)
	}
	l.excluded[seq] = x
}

// excludeDeferred excludes a deferred message if the feed has not passed it. The caller holds the
// lock.
func (s *DB) excludeDeferred(l *ledger, d *feeds.Deferred) {
	l.forgetPassed()
	e, shard, position := s.locate(d.ID)
	if e != nil && e.seq == d.Seq && position >= l.leases[shard].settled && len(l.excluded) < admin.MaxExcluded {
		l.exclude(d.Seq, exclusion{d.ID, shard, position})
	}
}

// locate returns the first message of the log with the ID, its shard and its position. The caller
// holds the lock.
func (s *DB) locate(id postrider.ID) (e *entry, shard, position int) {
	first := s.findID(id)
	if first == nil {
		return nil, 0, 0
	}
	shard = s.shardOf(&first.Message)
	sh := &s.shards[shard]
	return first, shard, sh.base + slices.IndexFunc(sh.entries, func(e entry) bool { return e.seq == first.seq })
}

// forgetPassed removes exclusions that the feed has passed.
func (l *ledger) forgetPassed() {
	maps.DeleteFunc(l.excluded, func(_ int64, x exclusion) bool { return x.position < l.leases[x.shard].settled })
}

// exclusions returns the messages that the feed must skip, in the order of the log.
func (l *ledger) exclusions() []postrider.ID {
	l.forgetPassed()
	var ids []postrider.ID
	for _, seq := range slices.Sorted(maps.Keys(l.excluded)) {
		ids = append(ids, l.excluded[seq].id)
	}
	return ids
}
