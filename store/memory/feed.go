package memory

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/postrider/postrider"
)

var errClosed = errors.New("memory: feed is closed")

// feed is one membership of a ledger. Being the holder of a lease is the fence: whoever takes a shard over replaces the
// holder, and nothing that the old one does reaches the shard again.
type feed struct {
	store  *Store
	ledger *ledger
	id     int
	lease  time.Duration
	next   []int // by shard: position of the first message not handed out; means nothing for shards not held
	closed bool
}

// window is the Cursor of a batch: the positions of its messages, from inclusive, to exclusive.
type window struct{ from, to int }

// Balance implements [postrider.Feed].
func (f *feed) Balance(ctx context.Context) (postrider.Share, error) {
	var share postrider.Share
	err := f.locked(ctx, func(now time.Time) error {
		f.announce(now)
		share.Quota, share.Members = f.quota(now)
		leases := f.ledger.leases
		for i := range leases {
			if leases[i].holder == f && now.Before(leases[i].until) {
				share.Shards = append(share.Shards, i)
			}
		}
		for i := range leases {
			l := &leases[i]
			switch {
			case l.holder != nil && now.Before(l.until):
				continue
			case len(share.Shards) < share.Quota:
				if l.holder != f { // its own, late but taken by nobody, goes on where it was
					f.next[i] = l.settled
				}
				l.holder, l.until = f, now.Add(f.lease)
				share.Shards = append(share.Shards, i)
			case l.holder == f: // not in the share, so the caller forgets what it read: the fence must know
				l.holder = nil
			}
		}
		slices.Sort(share.Shards)
		return nil
	})
	return share, err
}

// Read implements [postrider.Feed].
func (f *feed) Read(ctx context.Context, want []postrider.Demand) ([]postrider.Batch, error) {
	var batches []postrider.Batch
	err := f.locked(ctx, func(time.Time) error {
		for _, d := range want {
			if !f.holds(d.Shard) {
				continue
			}
			sh, from := &f.store.shards[d.Shard], f.next[d.Shard]
			to := min(from+d.Limit, sh.end())
			if from >= to {
				continue
			}
			b := postrider.Batch{Shard: d.Shard, More: to < sh.end(), Cursor: window{from, to}}
			for _, m := range sh.messages[from-sh.base : to-sh.base] {
				b.Messages = append(b.Messages, clone(m))
			}
			f.next[d.Shard] = to
			batches = append(batches, b)
		}
		return nil
	})
	return batches, err
}

// Settle implements [postrider.Feed].
func (f *feed) Settle(ctx context.Context, marks []postrider.Mark) (lost []int, err error) {
	err = f.locked(ctx, func(now time.Time) error {
		f.announce(now)
		lost, err = f.settle(marks, now.Add(f.lease))
		return err
	})
	return lost, err
}

// Release implements [postrider.Feed].
func (f *feed) Release(ctx context.Context, marks []postrider.Mark) error {
	return f.locked(ctx, func(now time.Time) error {
		if _, err := f.settle(marks, now); err != nil {
			return err
		}
		for _, m := range marks {
			if f.holds(m.Shard) {
				f.ledger.leases[m.Shard].holder = nil
			}
		}
		return nil
	})
}

// Close implements [postrider.Feed].
func (f *feed) Close(ctx context.Context) error {
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	f.closed = true
	delete(f.ledger.members, f)
	return nil
}

func (f *feed) locked(ctx context.Context, do func(now time.Time) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	if f.closed {
		return errClosed
	}
	return do(time.Now())
}

func (f *feed) announce(now time.Time) { f.ledger.members[f] = now.Add(f.lease) }

// quota divides the shards evenly; the oldest members get one more each when there is a remainder. The quotas add up
// to all shards, so none stays free, and none is claimed by two.
func (f *feed) quota(now time.Time) (quota, members int) {
	maps.DeleteFunc(f.ledger.members, func(_ *feed, until time.Time) bool { return !now.Before(until) })
	older := 0
	for other := range f.ledger.members {
		if other.id < f.id {
			older++
		}
	}
	members = len(f.ledger.members)
	quota = len(f.store.shards) / members
	if older < len(f.store.shards)%members {
		quota++
	}
	return quota, members
}

// holds does not look at the lease's end: until another member takes the shard, it cannot hurt to go on.
func (f *feed) holds(shard int) bool {
	return shard >= 0 && shard < len(f.ledger.leases) && f.ledger.leases[shard].holder == f
}

func (f *feed) settle(marks []postrider.Mark, until time.Time) (lost []int, err error) {
	for _, m := range marks {
		if m.Batch != nil && m.Batch.Shard != m.Shard {
			return nil, fmt.Errorf("memory: mark of shard %d with a batch of shard %d", m.Shard, m.Batch.Shard)
		}
	}
	for _, m := range marks {
		if !f.holds(m.Shard) {
			lost = append(lost, m.Shard)
			continue
		}
		l := &f.ledger.leases[m.Shard]
		l.until = until
		if m.Batch == nil {
			continue
		}
		if w, ok := m.Batch.Cursor.(window); ok { // marks may come late, and must not move the shard back
			l.settled = max(l.settled, min(w.from+m.Done, w.to))
		}
	}
	return lost, nil
}
