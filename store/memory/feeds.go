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

var _ admin.Feeds = (*DB)(nil)

// ListFeeds implements [admin.Feeds].
func (s *DB) ListFeeds(ctx context.Context) ([]admin.Feed, error) {
	var names []admin.Feed
	err := s.locked(ctx, func(now time.Time) error {
		for _, name := range slices.Sorted(maps.Keys(s.ledgers)) {
			l := s.ledgers[name]
			f := admin.Feed{Name: name, Created: l.created, Paused: l.paused, Destination: l.destination, Shards: len(s.shards), Members: l.alive(now), Settled: l.settled}
			for i := range s.shards {
				sh := &s.shards[i]
				f.Pending += sh.end() - l.leases[i].settled
				for position := l.leases[i].settled; position < sh.end(); position++ {
					f.Oldest = earlier(f.Oldest, sh.at(position).at)
				}
			}
			l.deferred.summarise(&f)
			names = append(names, f)
		}
		return nil
	})
	return names, err
}

func (a deferredList) summarise(f *admin.Feed) {
	keys := make(map[string]bool)
	for _, d := range a {
		switch d.Status {
		case feeds.StatusDead:
			f.Dead++
		case feeds.StatusParked:
			f.Parked++
		default:
			f.Deferred++
		}
		if !d.AvailableAt.IsZero() {
			f.NextRetry = earlier(f.NextRetry, d.AvailableAt)
		}
		if key := d.OrderKey(); blocks(d, key) {
			keys[key] = true
		}
	}
	f.Blocked = len(keys)
}

// earlier returns the earlier of two times, of which the first may be zero.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// AddFeed implements [admin.Feeds].
func (s *DB) AddFeed(ctx context.Context, by admin.By, name string, oldest bool) error {
	return s.locked(ctx, func(now time.Time) error {
		if s.ledgers[name] != nil {
			return &admin.RefusedError{
				Reason: fmt.Sprintf("there is a feed %q already", name),
				Remedy: "choose another name, or remove that feed first",
			}
		}
		s.create(by, name, feeds.Origin{Now: !oldest}, "", now)
		return nil
	})
}

// RemoveFeed implements [admin.Feeds].
func (s *DB) RemoveFeed(ctx context.Context, by admin.By, name string) error {
	return s.withFeed(ctx, name, func(l *ledger, now time.Time) error {
		if n := l.alive(now); n > 0 {
			return &admin.RefusedError{
				Reason: fmt.Sprintf("feed %q is served by %d relays", name, n),
				Remedy: "stop them first",
			}
		}
		e := entryOf(by, "feed rm", name, now)
		if e.Count = len(l.deferred); e.Count > 0 {
			e.Before = describe(l.deferred)
		}
		delete(s.ledgers, name)
		s.record(e)
		return nil
	})
}

// PauseFeed implements [admin.Feeds].
func (s *DB) PauseFeed(ctx context.Context, by admin.By, name string, paused bool) error {
	return s.withFeed(ctx, name, func(l *ledger, now time.Time) error {
		action := "feed resume"
		if paused {
			action = "feed pause"
		}
		e := entryOf(by, action, name, now)
		e.Before, e.After = map[string]any{"paused": l.paused}, map[string]any{"paused": paused}
		l.paused = paused
		s.record(e)
		return nil
	})
}

// Rewind implements [admin.Feeds]. It can go back to the oldest message that Maintain has not
// dropped.
func (s *DB) Rewind(ctx context.Context, by admin.By, name string, to admin.Point) (n int, err error) {
	err = s.withFeed(ctx, name, func(l *ledger, now time.Time) error {
		target := map[string]any{"time": to.Time}
		reached := func(e *entry) bool { return !e.at.Before(to.Time) }
		if !to.ID.IsZero() {
			first := s.findID(to.ID)
			if first == nil {
				return admin.ErrNoMessage
			}
			target = map[string]any{"id": to.ID.String()}
			reached = func(e *entry) bool { return e.seq >= first.seq }
		}
		for i := range l.leases {
			lease, sh := &l.leases[i], &s.shards[i]
			place := slices.IndexFunc(sh.entries[:lease.settled-sh.base], func(e entry) bool { return reached(&e) })
			if place < 0 {
				continue
			}
			n += lease.settled - sh.base - place
			lease.settled = sh.base + place
			lease.owner, lease.sent = nil, time.Time{} // the owner must start again at the new position, and send everything
		}
		e := entryOf(by, "feed rewind", name, now)
		e.Count, e.Target = n, target
		s.record(e)
		return nil
	})
	return n, err
}

// findID returns the first message of the log with the ID. The caller holds the lock.
func (s *DB) findID(id postrider.ID) *entry {
	var first *entry
	for i := range s.shards {
		for j := range s.shards[i].entries {
			if e := &s.shards[i].entries[j]; e.ID == id && (first == nil || e.seq < first.seq) {
				first = e
			}
		}
	}
	return first
}

func (s *DB) withFeed(ctx context.Context, name string, do func(l *ledger, now time.Time) error) error {
	return s.locked(ctx, func(now time.Time) error {
		l := s.ledgers[name]
		if l == nil {
			return &feeds.NoFeedError{Feed: name}
		}
		return do(l, now)
	})
}
