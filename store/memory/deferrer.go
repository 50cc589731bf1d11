package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/postrider/postrider"
)

// maxBehind is how many messages Due returns behind one that blocks its key.
const maxBehind = 100

// Defer implements [postrider.Deferrer].
func (f *feed) Defer(ctx context.Context, msgs []postrider.Deferral) error {
	return f.locked(ctx, func(now time.Time) error {
		rows := make([]*postrider.Deferred, len(msgs))
		for i := range msgs {
			var err error
			if rows[i], err = f.setAside(&msgs[i], now); err != nil {
				return fmt.Errorf("memory: defer: %w", err)
			}
		}
		// First what others wait for.
		slices.SortFunc(rows, func(a, b *postrider.Deferred) int {
			waitA, waitB := a.Status == postrider.StatusWaiting, b.Status == postrider.StatusWaiting
			if waitA != waitB {
				if waitB {
					return -1
				}
				return 1
			}
			return cmp.Compare(a.Seq, b.Seq)
		})
		for _, d := range rows {
			if d.Status == postrider.StatusWaiting {
				if head := f.ledger.aside.head(d.OrderKey()); head == nil || head.Seq > d.Seq {
					d.Status, d.AvailableAt = postrider.StatusRetry, now
				}
			}
			f.ledger.aside.insert(d)
		}
		return nil
	})
}

// setAside makes the row that a deferral asks for.
func (f *feed) setAside(d *postrider.Deferral, now time.Time) (*postrider.Deferred, error) {
	position, err := f.position(d.Batch, d.Index)
	if err != nil {
		return nil, err
	}
	e := f.store.shards[d.Batch.Shard].at(position)
	row := &postrider.Deferred{
		Message:    clone(e.Message),
		Feed:       f.name,
		Shard:      d.Batch.Shard,
		Seq:        e.seq,
		Status:     d.Status,
		Blocking:   d.Blocking,
		Attempts:   d.Attempts,
		LastError:  d.Cause,
		EnqueuedAt: e.at,
		DeferredAt: now,
	}
	switch d.Status {
	case postrider.StatusRetry:
		row.TriedAt, row.AvailableAt = now, now.Add(d.Delay)
	case postrider.StatusDead:
		row.TriedAt = now
	case postrider.StatusScheduled:
		if row.AvailableAt = e.DeliverAfter; row.AvailableAt.IsZero() {
			row.AvailableAt = now
		}
	case postrider.StatusWaiting:
	default:
		return nil, fmt.Errorf("a message cannot be set aside as %q", d.Status)
	}
	return row, nil
}

// position finds a message of a batch in the log.
func (f *feed) position(b *postrider.Batch, index int) (int, error) {
	if b == nil {
		return 0, errors.New("a message without its batch")
	}
	w, ok := b.Cursor.(window)
	if !ok || index < 0 || index >= w.to-w.from {
		return 0, fmt.Errorf("message %d is not in its batch", index)
	}
	if !f.holds(b.Shard) {
		return 0, fmt.Errorf("shard %d is not held", b.Shard)
	}
	position := w.from + index
	if sh := &f.store.shards[b.Shard]; position < sh.base || position >= sh.end() {
		return 0, fmt.Errorf("message %d of shard %d is no longer in the log", index, b.Shard)
	}
	return position, nil
}

// Blocked implements [postrider.Deferrer].
func (f *feed) Blocked(ctx context.Context, shard int) (keys []string, err error) {
	err = f.locked(ctx, func(time.Time) error {
		seen := make(map[string]bool)
		for _, d := range f.ledger.aside {
			if key := d.OrderKey(); d.Shard == shard && blocks(d, key) && !seen[key] {
				seen[key] = true
				keys = append(keys, key)
			}
		}
		return nil
	})
	return keys, err
}

// Due implements [postrider.Deferrer].
func (f *feed) Due(ctx context.Context, shards []int, limit int) (postrider.Due, error) {
	due := postrider.Due{Next: -1}
	err := f.locked(ctx, func(now time.Time) error {
		var ready []*postrider.Deferred
		for _, d := range f.ledger.aside {
			if d.AvailableAt.IsZero() || !f.holds(d.Shard) || !slices.Contains(shards, d.Shard) {
				continue
			}
			if wait := d.AvailableAt.Sub(now); wait <= 0 {
				ready = append(ready, d)
			} else if due.Next < 0 || wait < due.Next {
				due.Next = wait
			}
		}
		slices.SortStableFunc(ready, func(a, b *postrider.Deferred) int { // stable: they come by seq
			return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.AvailableAt.Compare(b.AvailableAt))
		})
		for _, d := range ready {
			if len(due.Messages) >= limit {
				break
			}
			due.Messages = append(due.Messages, copyOf(d))
			for _, w := range f.ledger.aside.behind(d, maxBehind) {
				due.Messages = append(due.Messages, copyOf(w))
			}
		}
		return nil
	})
	return due, err
}

// Conclude implements [postrider.Deferrer].
func (f *feed) Conclude(ctx context.Context, done []postrider.Conclusion) (free []string, err error) {
	err = f.locked(ctx, func(now time.Time) error {
		for _, c := range done {
			if !f.holds(c.Shard) {
				return fmt.Errorf("memory: conclude: shard %d is not held", c.Shard)
			}
		}
		free = f.ledger.aside.conclude(done, now)
		for _, c := range done {
			delete(f.ledger.leases[c.Shard].started, c.Seq)
		}
		return nil
	})
	return free, err
}

// start is how often a message was begun that may kill relays, and by whom last.
type start struct {
	times int
	by    *feed
}

// Suspect implements [postrider.Deferrer].
func (f *feed) Suspect(ctx context.Context, begun postrider.Start) (started int, err error) {
	err = f.locked(ctx, func(time.Time) error {
		shard, seq, err := f.placeOf(begun)
		if err != nil {
			return fmt.Errorf("memory: suspect: %w", err)
		}
		for i := range f.ledger.leases {
			maps.DeleteFunc(f.ledger.leases[i].started, func(other int64, s start) bool { return s.by == f && other != seq })
		}
		l := &f.ledger.leases[shard]
		if l.started == nil {
			l.started = make(map[int64]start)
		}
		s := l.started[seq]
		if s.by != f {
			s = start{s.times + 1, f}
		}
		l.started[seq], started = s, s.times
		return nil
	})
	return started, err
}

// placeOf finds a message that is about to be sent.
func (f *feed) placeOf(begun postrider.Start) (shard int, seq int64, err error) {
	if begun.Batch == nil {
		if !f.holds(begun.Shard) {
			return 0, 0, fmt.Errorf("shard %d is not held", begun.Shard)
		}
		return begun.Shard, begun.Seq, nil
	}
	position, err := f.position(begun.Batch, begun.Index)
	if err != nil {
		return 0, 0, err
	}
	return begun.Batch.Shard, f.store.shards[begun.Batch.Shard].at(position).seq, nil
}
