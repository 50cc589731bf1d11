package memory

import (
	"cmp"
	"slices"
	"time"

	"github.com/postrider/postrider/store/feeds"
)

// aside is what a feed has deferred, by seq.
type aside []*feeds.Deferred

func (a aside) find(seq int64) (int, bool) {
	return slices.BinarySearchFunc(a, seq, func(d *feeds.Deferred, seq int64) int { return cmp.Compare(d.Seq, seq) })
}

func (a aside) get(seq int64) *feeds.Deferred {
	if i, ok := a.find(seq); ok {
		return a[i]
	}
	return nil
}

func (a *aside) insert(d *feeds.Deferred) {
	if i, ok := a.find(d.Seq); !ok {
		*a = slices.Insert(*a, i, d)
	}
}

func (a *aside) remove(d *feeds.Deferred) {
	if i, ok := a.find(d.Seq); ok {
		*a = slices.Delete(*a, i, i+1)
	}
}

// head returns the first message that blocks the key.
func (a aside) head(key string) *feeds.Deferred {
	for _, d := range a {
		if blocks(d, key) {
			return d
		}
	}
	return nil
}

// behind returns up to limit messages of the key that wait directly behind one that blocks it.
func (a aside) behind(d *feeds.Deferred, limit int) []*feeds.Deferred {
	var waiting []*feeds.Deferred
	i, _ := a.find(d.Seq)
	for _, w := range a[i+1:] {
		if !d.Blocking || !blocks(w, d.OrderKey()) {
			continue
		}
		if w.Status != feeds.StatusWaiting || len(waiting) == limit {
			break
		}
		waiting = append(waiting, w)
	}
	return waiting
}

// promote makes the first message of a key go, now that what it waited for is gone. It returns true if there is none: the
// key is free.
func (a aside) promote(key string, now time.Time) bool {
	head := a.head(key)
	if head != nil && head.Status == feeds.StatusWaiting {
		again(head, now)
	}
	return head == nil
}

// conclude records what has become of messages that were due, and returns the keys that are free again.
func (a *aside) conclude(done []feeds.Conclusion, now time.Time) (free []string) {
	var keys []string
	for _, c := range done {
		d := a.get(c.Seq)
		if d == nil || d.Shard != c.Shard || d.Status == feeds.StatusDead || d.Status == feeds.StatusParked {
			continue
		}
		if !c.Delivered {
			d.Status, d.Name, d.Attempts, d.LastError, d.TriedAt, d.AvailableAt = c.Status, "", c.Attempts, c.Cause, now, time.Time{}
			switch c.Status {
			case feeds.StatusRetry:
				d.AvailableAt = now.Add(c.Delay)
			case feeds.StatusHeld:
				d.Name = c.Name
			default: // nothing else has a time or a name
			}
			if !c.Overtaken {
				continue
			}
		}
		if key := d.OrderKey(); blocks(d, key) && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
		if d.Blocking = false; c.Delivered {
			a.remove(d)
		}
	}
	for _, key := range keys {
		if a.promote(key, now) {
			free = append(free, key)
		}
	}
	return free
}

// content returns the position in a shard from which on the log has the only content of a message that was deferred.
func (a aside) content(sh *shard, number int) int {
	first := slices.IndexFunc(a, func(d *feeds.Deferred) bool { return d.Bare && d.Shard == number })
	if first < 0 {
		return sh.end()
	}
	at := slices.IndexFunc(sh.entries, func(e entry) bool { return e.seq >= a[first].Seq })
	return sh.base + max(at, 0)
}

// anyDue reports whether any message is due or will be.
func (a aside) anyDue() bool {
	return slices.ContainsFunc(a, func(d *feeds.Deferred) bool {
		return !d.AvailableAt.IsZero() || d.Status == feeds.StatusHeld
	})
}

// again has a message sent now, with all its attempts ahead of it.
func again(d *feeds.Deferred, now time.Time) {
	d.Status, d.Name, d.Attempts, d.AvailableAt = feeds.StatusRetry, "", 0, now
}

func blocks(d *feeds.Deferred, key string) bool {
	return d.Blocking && key != "" && d.OrderKey() == key
}

func copyOf(d *feeds.Deferred) feeds.Deferred {
	c := *d
	c.Message = clone(d.Message)
	return c
}
