package memory

import (
	"cmp"
	"slices"
	"time"

	"github.com/postrider/postrider/store/feeds"
)

// deferredList holds the deferred messages of a feed, sorted by seq.
type deferredList []*feeds.Deferred

func (a deferredList) find(seq int64) (int, bool) {
	return slices.BinarySearchFunc(a, seq, func(d *feeds.Deferred, seq int64) int { return cmp.Compare(d.Seq, seq) })
}

func (a deferredList) get(seq int64) *feeds.Deferred {
	if i, ok := a.find(seq); ok {
		return a[i]
	}
	return nil
}

func (a *deferredList) insert(d *feeds.Deferred) {
	if i, ok := a.find(d.Seq); !ok {
		*a = slices.Insert(*a, i, d)
	}
}

func (a *deferredList) remove(d *feeds.Deferred) {
	if i, ok := a.find(d.Seq); ok {
		*a = slices.Delete(*a, i, i+1)
	}
}

// head returns the first message that blocks the key.
func (a deferredList) head(key string) *feeds.Deferred {
	for _, d := range a {
		if blocks(d, key) {
			return d
		}
	}
	return nil
}

// behind returns up to limit messages that wait directly behind one that blocks their key.
func (a deferredList) behind(d *feeds.Deferred, limit int) []*feeds.Deferred {
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

// promote makes the first message of a key due after the one before it has left. It returns true if
// there is none: the key is no longer blocked.
func (a deferredList) promote(key string, now time.Time) bool {
	head := a.head(key)
	if head != nil && head.Status == feeds.StatusWaiting {
		retryNow(head, now)
	}
	return head == nil
}

// unsure returns how long before the deferral of d something was sent; 0 if nothing was. Stored rows
// have it in the place of the time until now.
func unsure(d *feeds.Deferred, sent time.Time) time.Duration {
	if sent.IsZero() {
		return 0
	}
	return cmp.Or(d.DeferredAt.Sub(sent), 1)
}

// conclude records the outcome of attempts, and returns the keys that are no longer blocked.
func (a *deferredList) conclude(done []feeds.Conclusion, now time.Time) (free []string) {
	var keys []string
	for _, c := range done {
		d := a.get(c.Seq)
		if d == nil || d.Shard != c.Shard || d.Status == feeds.StatusDead || d.Status == feeds.StatusParked {
			continue
		}
		if !c.Delivered {
			d.Status, d.Name, d.Attempts, d.LastError, d.TriedAt, d.AvailableAt = c.Status, "", c.Attempts, c.Cause, now, time.Time{}
			d.Unsure = unsure(d, c.Sent)
			switch c.Status {
			case feeds.StatusRetry:
				d.AvailableAt = now.Add(c.Delay)
			case feeds.StatusHeld:
				d.Name = c.Name
			default: // other states have neither a time nor a name
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

// content returns the position in a shard from which on the log must keep messages because it has
// the only copy of their content.
func (a deferredList) content(sh *shard, number int) int {
	first := slices.IndexFunc(a, func(d *feeds.Deferred) bool { return d.Bare && d.Shard == number })
	if first < 0 {
		return sh.end()
	}
	at := slices.IndexFunc(sh.entries, func(e entry) bool { return e.seq >= a[first].Seq })
	return sh.base + max(at, 0)
}

// anyDue reports whether any message is due or will be.
func (a deferredList) anyDue() bool {
	return slices.ContainsFunc(a, func(d *feeds.Deferred) bool {
		return !d.AvailableAt.IsZero() || d.Status == feeds.StatusHeld
	})
}

// retryNow makes a message due now with all its attempts.
func retryNow(d *feeds.Deferred, now time.Time) {
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
