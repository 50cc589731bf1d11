package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/desk"
)

var _ desk.Excluder = (*Store)(nil)

// exclusion is a message that an operator has decided about before the feed has passed it.
type exclusion struct {
	id              postrider.ID
	shard, position int
}

// Exclude implements [desk.Excluder].
func (s *Store) Exclude(ctx context.Context, by desk.By, act desk.Act, feed string, id postrider.ID) error {
	if act != desk.Park && act != desk.Discard {
		return fmt.Errorf("memory: a message of the log cannot be excluded by the act %q", act)
	}
	return s.withFeed(ctx, feed, func(l *ledger, now time.Time) error {
		e, shard, position := s.locate(id)
		if e == nil {
			return fmt.Errorf("memory: message %s: %w", id, desk.ErrNoMessage)
		}
		l.forgetPassed()
		_, known := l.excluded[e.seq]
		switch {
		case l.aside.get(e.seq) != nil:
			return desk.ErrSetAside
		case known:
			return nil
		case position < l.leases[shard].settled:
			return desk.ErrPassed
		case len(l.excluded) >= desk.MaxExcluded:
			return desk.ErrTooManyExcluded
		}
		was := l.stand(feed, shard, position, e)
		entry := entryOf(by, string(act), feed, now)
		entry.Count, entry.Target, entry.Before = 1, map[string]any{"id": id.String()}, describe([]*postrider.Deferred{&was})
		if act == desk.Park {
			d := copyOf(&was)
			d.Status, d.DeferredAt = postrider.StatusParked, now
			l.aside.insert(&d)
			entry.After = describe([]*postrider.Deferred{&d})
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

// passOver excludes a message that was set aside, if the feed has not passed it. The caller holds the lock.
func (s *Store) passOver(l *ledger, d *postrider.Deferred) {
	l.forgetPassed()
	e, shard, position := s.locate(d.ID)
	if e != nil && e.seq == d.Seq && position >= l.leases[shard].settled && len(l.excluded) < desk.MaxExcluded {
		l.exclude(d.Seq, exclusion{d.ID, shard, position})
	}
}

// locate returns the first message of the log that has the ID, its shard and its position there. The caller holds the lock.
func (s *Store) locate(id postrider.ID) (e *entry, shard, position int) {
	first := s.findID(id)
	if first == nil {
		return nil, 0, 0
	}
	shard = s.shardOf(&first.Message)
	sh := &s.shards[shard]
	return first, shard, sh.base + slices.IndexFunc(sh.entries, func(e entry) bool { return e.seq == first.seq })
}

// forgetPassed forgets exclusions that the feed has passed.
func (l *ledger) forgetPassed() {
	maps.DeleteFunc(l.excluded, func(_ int64, x exclusion) bool { return x.position < l.leases[x.shard].settled })
}

// exclusions returns the messages that the feed is to pass over, in the order of the log.
func (l *ledger) exclusions() []postrider.ID {
	l.forgetPassed()
	var ids []postrider.ID
	for _, seq := range slices.Sorted(maps.Keys(l.excluded)) {
		ids = append(ids, l.excluded[seq].id)
	}
	return ids
}
