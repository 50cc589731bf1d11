package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
)

var _ admin.Gauges = (*DB)(nil)

// Gauges implements [admin.Gauges]. All its figures are exact.
func (s *DB) Gauges(ctx context.Context) (*admin.Standing, error) {
	g := &admin.Standing{Feeds: []admin.FeedStanding{}, Consumers: []admin.ConsumerStanding{}}
	err := s.locked(ctx, func(now time.Time) error {
		g.At, g.Enqueued = now, s.written
		for _, name := range slices.Sorted(maps.Keys(s.ledgers)) {
			l := s.ledgers[name]
			l.alive(now)
			f := admin.FeedStanding{
				Name: name, Paused: l.paused, Settled: l.settled, Deferred: l.deferred.count(), Pending: admin.Estimate{Exact: true},
				Members: l.listMembers(), Shards: []admin.Shard{},
			}
			for i := range s.shards {
				shard := s.shard(l, i, now)
				f.Shards = append(f.Shards, shard)
				f.Pending.N += shard.Pending.N
				if !shard.Oldest.IsZero() {
					f.Oldest = earlier(f.Oldest, shard.Oldest)
				}
			}
			g.Feeds = append(g.Feeds, f)
		}
		for _, name := range slices.Sorted(maps.Keys(s.inboxes)) {
			r := s.inboxes[name]
			g.Consumers = append(g.Consumers, admin.ConsumerStanding{
				Name: name, Created: r.created, Last: r.last, Deferred: r.deferred.count(), Heard: r.heard, Process: r.process,
			})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return g, nil
}

// shard returns the state of a shard of a feed. The caller holds the lock.
func (s *DB) shard(l *ledger, shard int, now time.Time) admin.Shard {
	lease, sh := &l.leases[shard], &s.shards[shard]
	out := admin.Shard{
		Shard: shard, Base: shard, At: l.created, Crashes: lease.crashes,
		Pending: admin.Estimate{N: int64(sh.end() - lease.settled), Exact: true},
	}
	if !lease.at.IsZero() {
		out.At = lease.at
	}
	if lease.owner != nil && now.Before(lease.until) {
		out.Holder, out.Until = lease.owner.shown, lease.until
	}
	if lease.settled > sh.base {
		out.Last = sh.at(lease.settled - 1).seq
	}
	for position := lease.settled; position < sh.end(); position++ { // in the order of commits
		out.Oldest = earlier(out.Oldest, sh.at(position).at)
	}
	return out
}

// listMembers returns the members, sorted by name.
func (l *ledger) listMembers() []admin.Member {
	members := []admin.Member{}
	for f, until := range l.members {
		m := admin.Member{ID: strconv.Itoa(f.id), Name: f.shown, Since: f.since, Heard: f.heard, Until: until, Shards: []int{}}
		for i := range l.leases {
			if l.leases[i].owner == f {
				m.Shards = append(m.Shards, i)
			}
		}
		members = append(members, m)
	}
	slices.SortFunc(members, func(a, b admin.Member) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return members
}

func (a deferredList) count() admin.DeferredCount {
	c := admin.DeferredCount{Exact: true}
	keys := make(map[string]bool)
	for _, d := range a {
		switch d.Status {
		case feeds.StatusScheduled:
			c.Scheduled++
		case feeds.StatusRetry:
			c.Retry++
		case feeds.StatusHeld:
			c.Held++
		case feeds.StatusWaiting:
			c.Waiting++
		case feeds.StatusDead:
			c.Dead++
		case feeds.StatusParked:
			c.Parked++
		default: // a deferred message has no other status
		}
		if key := d.OrderKey(); blocks(d, key) {
			keys[key] = true
		}
	}
	c.Blocked = len(keys)
	return c
}

// Health implements [admin.Gauges]. Without a database there is little to report.
func (s *DB) Health(ctx context.Context) (*admin.Health, error) {
	v := &admin.Health{Server: "memory", Tables: []admin.TableSize{}, Slots: []admin.Slot{}}
	err := s.locked(ctx, func(now time.Time) error {
		v.At, v.DedupKeys = now, int64(len(s.keys))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return v, nil
}
