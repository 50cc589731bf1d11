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
	"github.com/postrider/postrider/store/feeds"
)

// maxBehind is the maximum number of messages that Due returns behind one that blocks its key.
const maxBehind = 100

// Defer implements [feeds.Deferrer].
func (f *feed) Defer(ctx context.Context, msgs []feeds.Deferral) error {
	return f.locked(ctx, func(now time.Time) error {
		rows := make([]*feeds.Deferred, len(msgs))
		for i := range msgs {
			var err error
			if rows[i], err = f.newDeferred(&msgs[i], now); err != nil {
				return fmt.Errorf("memory: defer: %w", err)
			}
		}
		// Messages that wait are inserted after those that they may wait for.
		slices.SortFunc(rows, func(a, b *feeds.Deferred) int {
			waitA, waitB := a.Status == feeds.StatusWaiting, b.Status == feeds.StatusWaiting
			if waitA != waitB {
				if waitB {
					return -1
				}
				return 1
			}
			return cmp.Compare(a.Seq, b.Seq)
		})
		for _, d := range rows {
			if d.Status == feeds.StatusWaiting {
				if head := f.ledger.deferred.head(d.OrderKey()); head == nil || head.Seq > d.Seq {
					d.Status, d.AvailableAt = feeds.StatusRetry, now
				}
			}
			if _, excluded := f.ledger.excluded[d.Seq]; !excluded {
				f.ledger.deferred.insert(d)
			}
		}
		return nil
	})
}

// newDeferred returns the deferred message for a deferral.
func (f *feed) newDeferred(d *feeds.Deferral, now time.Time) (*feeds.Deferred, error) {
	position, err := f.position(d.Batch, d.Index)
	if err != nil {
		return nil, err
	}
	e := f.store.shards[d.Batch.Shard].at(position)
	row := &feeds.Deferred{
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
	row.Unsure = unsure(row, d.Sent)
	if d.Bare {
		row.Bare, row.Blocking = true, false
		row.Message = postrider.Message{ID: e.ID, Type: string([]rune(e.Type)[:min(len([]rune(e.Type)), feeds.BareType)])}
	}
	switch d.Status {
	case feeds.StatusRetry:
		row.TriedAt, row.AvailableAt = now, now.Add(d.Delay)
	case feeds.StatusHeld:
		row.Name = d.Name
		if d.Cause != "" {
			row.TriedAt = now
		}
	case feeds.StatusDead:
		row.TriedAt = now
	case feeds.StatusScheduled:
		if row.AvailableAt = e.DeliverAfter; row.AvailableAt.IsZero() {
			row.AvailableAt = now
		}
	case feeds.StatusWaiting:
	default:
		return nil, fmt.Errorf("a message cannot be deferred as %q", d.Status)
	}
	return row, nil
}

// position returns the position of a message of a batch in the log.
func (f *feed) position(b *feeds.Batch, index int) (int, error) {
	if b == nil {
		return 0, errors.New("the message has no batch")
	}
	w, ok := b.Cursor.(window)
	if !ok || index < 0 || index >= w.to-w.from {
		return 0, fmt.Errorf("message %d is not in its batch", index)
	}
	if !f.holds(b.Shard) {
		return 0, fmt.Errorf("shard %d is not owned by this member", b.Shard)
	}
	position := w.from + index
	if sh := &f.store.shards[b.Shard]; position < sh.base || position >= sh.end() {
		return 0, fmt.Errorf("message %d of shard %d is no longer in the log", index, b.Shard)
	}
	return position, nil
}

// Blocked implements [feeds.Deferrer].
func (f *feed) Blocked(ctx context.Context, shard int) (keys []string, err error) {
	err = f.locked(ctx, func(time.Time) error {
		seen := make(map[string]bool)
		for _, d := range f.ledger.deferred {
			if key := d.OrderKey(); d.Shard == shard && blocks(d, key) && !seen[key] {
				seen[key] = true
				keys = append(keys, key)
			}
		}
		return nil
	})
	return keys, err
}

// Due implements [feeds.Deferrer].
func (f *feed) Due(ctx context.Context, want feeds.DueRequest) (feeds.Due, error) {
	due := feeds.Due{Next: -1}
	err := f.locked(ctx, func(now time.Time) error {
		var heads []head
		heads, due.Next = f.heads(want, now)
		bytes := 0
		for _, h := range heads {
			if len(due.Messages) >= want.Limit {
				break
			}
			run := []*feeds.Deferred{h.Deferred}
			if !h.probe {
				run = append(run, f.ledger.deferred.behind(h.Deferred, maxBehind)...)
			}
			for _, d := range run {
				if bytes += len(d.Payload); want.Bytes > 0 && bytes > want.Bytes && len(due.Messages) > 0 {
					return nil
				}
				c := copyOf(d)
				if c.Unsure != 0 {
					c.Unsure = max(c.Unsure+now.Sub(c.DeferredAt), 1)
				}
				due.Messages = append(due.Messages, c)
			}
		}
		return nil
	})
	return due, err
}

// head is a message that Due may return, together with those that wait behind it.
type head struct {
	*feeds.Deferred
	probe bool // returned alone
	rank  int  // position in its own list; see heads
}

// heads returns the messages that may be sent now, in order, and the time until another message is
// due. Messages whose time has come and messages of held names alternate, so that neither starves
// the other.
func (f *feed) heads(want feeds.DueRequest, now time.Time) (heads []head, next time.Duration) {
	type name struct {
		shard int
		name  string
	}
	held := make(map[name]feeds.HeldName)
	for _, h := range want.Held {
		held[name{h.Shard, h.Name}] = h
	}
	probed := make(map[name]int) // index in probes; the message is the first behind After or, if there is none, the first of all
	next = -1
	var timed, probes, released []head
	blocked := make(map[string]bool) // keys that an earlier message blocks
	for _, d := range f.ledger.deferred {
		key := d.OrderKey()
		waits := blocks(d, key) && blocked[key]
		blocked[key] = blocked[key] || blocks(d, key)
		if !f.holds(d.Shard) || !slices.Contains(want.Shards, d.Shard) {
			continue
		}
		switch {
		case d.Status == feeds.StatusHeld && waits:
		case d.Status == feeds.StatusHeld:
			n := name{d.Shard, d.Name}
			h, isHeld := held[n]
			at, found := probed[n]
			switch {
			case !isHeld:
				released = append(released, head{Deferred: d})
			case !h.Probe:
			case !found:
				probed[n] = len(probes)
				probes = append(probes, head{Deferred: d, probe: true})
			case probes[at].Seq <= h.After && d.Seq > h.After:
				probes[at].Deferred = d
			}
		case d.AvailableAt.IsZero():
		case d.AvailableAt.After(now):
			if wait := d.AvailableAt.Sub(now); next < 0 || wait < next {
				next = wait
			}
		default:
			timed = append(timed, head{Deferred: d})
		}
	}
	slices.SortStableFunc(timed, func(a, b head) int { // stable: they are sorted by seq
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.AvailableAt.Compare(b.AvailableAt))
	})
	for _, row := range [][]head{timed, append(probes, released...)} {
		for i := range row {
			row[i].rank = i
		}
		heads = append(heads, row...)
	}
	slices.SortStableFunc(heads, func(a, b head) int { return cmp.Compare(a.rank, b.rank) })
	return heads, next
}

// Conclude implements [feeds.Deferrer].
func (f *feed) Conclude(ctx context.Context, done []feeds.Conclusion) (free []string, err error) {
	err = f.locked(ctx, func(now time.Time) error {
		for _, c := range done {
			if !f.holds(c.Shard) {
				return fmt.Errorf("memory: conclude: shard %d is not owned by this member", c.Shard)
			}
		}
		free = f.ledger.deferred.conclude(done, now)
		for _, c := range done {
			delete(f.ledger.leases[c.Shard].started, c.Seq)
		}
		return nil
	})
	return free, err
}

// start is the number of members that started to send a suspect message, and the last of them.
type start struct {
	times int
	by    *feed
}

// Suspect implements [feeds.Deferrer].
func (f *feed) Suspect(ctx context.Context, begun feeds.Start) (started int, err error) {
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

// placeOf returns the shard and the sequence number of a message that is about to be sent.
func (f *feed) placeOf(begun feeds.Start) (shard int, seq int64, err error) {
	if begun.Batch == nil {
		if !f.holds(begun.Shard) {
			return 0, 0, fmt.Errorf("shard %d is not owned by this member", begun.Shard)
		}
		return begun.Shard, begun.Seq, nil
	}
	position, err := f.position(begun.Batch, begun.Index)
	if err != nil {
		return 0, 0, err
	}
	return begun.Batch.Shard, f.store.shards[begun.Batch.Shard].at(position).seq, nil
}
