package memory

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/postrider/postrider/store/feeds"
)

var errClosed = errors.New("memory: feed is closed")

// feed is a member of a ledger. The owner field of a lease is the fence: a member that takes over a
// shard replaces the owner, and no later call of the old owner affects the shard.
type feed struct {
	store  *DB
	ledger *ledger
	name   string
	shown  string // the member's name
	id     int
	lease  time.Duration
	since  time.Time // the first and the last sign of life of the member
	heard  time.Time
	next   []int  // by shard: position of the next message to read; valid for owned shards only
	told   []bool // by shard: the caller believes that it owns the shard
	taken  []int  // by shard: how often it was taken; batches of earlier times are void
	closed bool
}

// window is the Cursor of a batch: the positions of its messages, from inclusive, to exclusive, and
// the value of feed.taken when it was read.
type window struct{ from, to, taken int }

// Balance implements [feeds.Feed].
func (f *feed) Balance(ctx context.Context) (feeds.Share, error) {
	var share feeds.Share
	err := f.locked(ctx, func(now time.Time) error {
		f.announce(now)
		share.Quota, share.Members = f.quota(now)
		if share.Paused = f.ledger.paused; share.Paused {
			share.Quota = 0
		}
		share.Deferred = f.ledger.deferred.anyDue()
		share.Excluded = f.ledger.exclusions()
		share.ID, share.Terms, share.Unsure = f.ledger.id, make(map[int]int64), make(map[int]time.Duration)
		share.Shards = f.take(now, share.Quota)
		clear(f.told)
		for _, i := range share.Shards {
			f.told[i] = true
			l := &f.ledger.leases[i]
			if share.Terms[i] = l.term; !l.sent.IsZero() {
				share.Unsure[i] = now.Sub(l.sent)
			}
			if f.ledger.leases[i].crashes >= 1 {
				share.Orphans = append(share.Orphans, i)
			}
			if f.ledger.leases[i].crashes >= 2 {
				share.Suspects = append(share.Suspects, i)
			}
		}
		return nil
	})
	return share, err
}

// take takes free shards up to the quota and returns all shards that the member owns.
func (f *feed) take(now time.Time, quota int) []int {
	var held []int
	leases := f.ledger.leases
	for i := range leases {
		if leases[i].owner == f && now.Before(leases[i].until) {
			held = append(held, i)
		}
	}
	for i := range leases {
		l := &leases[i]
		switch {
		case l.owner != nil && now.Before(l.until):
			continue
		case f.told[i] && l.owner != f: // lost: the caller must learn that before it gets the shard again
			continue
		case len(held) < quota:
			switch l.owner {
			case f: // expired, but not taken over: continue
			case nil:
				f.next[i], l.crashes = l.settled, 0
				f.taken[i]++
			default:
				f.next[i] = l.settled
				f.taken[i]++
				l.crashes++
			}
			l.doubt()
			l.term++
			l.owner, l.until, l.at = f, now.Add(f.lease), now
			held = append(held, i)
		case l.owner == f: // not in the share, so the caller discards what it read: fence it
			l.doubt()
			l.owner = nil
		}
	}
	slices.Sort(held)
	return held
}

// doubt records that the owner, if there is one, may have sent something since its last mark.
func (l *lease) doubt() {
	if l.owner != nil && l.sent.IsZero() {
		l.sent = l.at
	}
}

// Read implements [feeds.Feed].
func (f *feed) Read(ctx context.Context, want []feeds.Demand) ([]feeds.Batch, error) {
	var batches []feeds.Batch
	err := f.locked(ctx, func(time.Time) error {
		for _, d := range want {
			if !f.holds(d.Shard) {
				continue
			}
			sh, from := &f.store.shards[d.Shard], f.next[d.Shard]
			to := sh.fit(from, min(from+d.Limit, sh.end()), d.Bytes)
			if from >= to {
				continue
			}
			b := feeds.Batch{Shard: d.Shard, More: to < sh.end(), Cursor: window{from, to, f.taken[d.Shard]}}
			for i, e := range sh.entries[from-sh.base : to-sh.base] {
				b.Messages = append(b.Messages, clone(e.Message))
				if d.Doubt && f.ledger.deferred.get(e.seq) != nil {
					b.Deferred = append(b.Deferred, i)
				}
			}
			f.next[d.Shard] = to
			batches = append(batches, b)
		}
		return nil
	})
	return batches, err
}

// Settle implements [feeds.Feed].
func (f *feed) Settle(ctx context.Context, marks []feeds.Mark) (lost []int, err error) {
	err = f.locked(ctx, func(now time.Time) error {
		f.announce(now)
		lost, err = f.settle(marks, now, now.Add(f.lease))
		return err
	})
	return lost, err
}

// Release implements [feeds.Feed].
func (f *feed) Release(ctx context.Context, marks []feeds.Mark) error {
	return f.locked(ctx, func(now time.Time) error {
		if _, err := f.settle(marks, now, now); err != nil {
			return err
		}
		for _, m := range marks {
			if f.holds(m.Shard) {
				f.ledger.leases[m.Shard].owner = nil
				f.told[m.Shard] = false
			}
		}
		return nil
	})
}

// Close implements [feeds.Feed].
func (f *feed) Close(ctx context.Context) error {
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	f.closed = true
	delete(f.ledger.members, f)
	return nil
}

func (f *feed) locked(ctx context.Context, do func(now time.Time) error) error {
	return f.store.locked(ctx, func(now time.Time) error {
		switch {
		case f.closed:
			return errClosed
		case f.store.ledgers[f.name] != f.ledger:
			return errRemoved
		}
		return do(now)
	})
}

func (f *feed) announce(now time.Time) {
	f.ledger.members[f] = now.Add(f.lease)
	if f.heard = now; f.since.IsZero() {
		f.since = now
	}
}

// quota divides the shards evenly; the oldest members get one more each if there is a remainder.
// The quotas add up to all shards, so none stays free and none is claimed twice.
func (f *feed) quota(now time.Time) (quota, members int) {
	members = f.ledger.alive(now)
	older := 0
	for other := range f.ledger.members {
		if other.id < f.id {
			older++
		}
	}
	quota = len(f.store.shards) / members
	if older < len(f.store.shards)%members {
		quota++
	}
	return quota, members
}

// alive removes members that have expired, and counts the others.
func (l *ledger) alive(now time.Time) int {
	maps.DeleteFunc(l.members, func(_ *feed, until time.Time) bool { return !now.Before(until) })
	return len(l.members)
}

// holds reports whether the member owns the shard. It ignores the expiry of the lease: until
// another member takes over, it is safe to continue.
func (f *feed) holds(shard int) bool {
	return shard >= 0 && shard < len(f.ledger.leases) && f.ledger.leases[shard].owner == f
}

func (f *feed) settle(marks []feeds.Mark, now, until time.Time) (lost []int, err error) {
	for _, m := range marks {
		if m.Batch != nil && m.Batch.Shard != m.Shard {
			return nil, fmt.Errorf("memory: mark of shard %d with a batch of shard %d", m.Shard, m.Batch.Shard)
		}
	}
	for _, m := range marks {
		if !f.holds(m.Shard) {
			lost = append(lost, m.Shard)
			if m.Shard >= 0 && m.Shard < len(f.told) {
				f.told[m.Shard] = false
			}
			continue
		}
		l := &f.ledger.leases[m.Shard]
		if m.Batch == nil {
			l.sent, l.until, l.at = m.Sent, until, now
			continue
		}
		f.ledger.settled = now
		w, _ := m.Batch.Cursor.(window)
		if w.taken == f.taken[m.Shard] {
			l.sent = m.Sent
		} else { // read before the shard was lost: it says nothing of what was sent since
			l.doubt()
		}
		l.until, l.at = until, now
		// Late marks must not move the position back.
		if to := min(w.from+m.Done, w.to); w.taken == f.taken[m.Shard] && to > l.settled {
			if len(l.started) > 0 { // deferred messages are before l.settled, and may still be the cause of crashes
				for position := l.settled; position < to; position++ {
					delete(l.started, f.store.shards[m.Shard].at(position).seq)
				}
			}
			l.settled, l.crashes = to, 0
		}
	}
	return lost, nil
}
