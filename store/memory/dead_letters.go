package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/store/feeds"
)

var _ admin.DeadLetters = (*DB)(nil)

// List implements [admin.DeadLetters]. It sorts by the name of the feed first.
func (s *DB) List(ctx context.Context, filter admin.Filter, after *feeds.Deferred, limit int) ([]feeds.Deferred, error) {
	var page []feeds.Deferred
	err := s.locked(ctx, func(time.Time) error {
		for _, d := range s.choose(filter) {
			if after != nil && inOrder(d, after) <= 0 {
				continue
			}
			if len(page) >= limit {
				break
			}
			page = append(page, copyOf(d))
		}
		return nil
	})
	return page, err
}

// Count implements [admin.DeadLetters].
func (s *DB) Count(ctx context.Context, filter admin.Filter, limit int) (map[feeds.Status]int, error) {
	counts := make(map[feeds.Status]int)
	err := s.locked(ctx, func(time.Time) error {
		for _, d := range s.choose(filter) {
			if limit == 0 || counts[d.Status] < limit {
				counts[d.Status]++
			}
		}
		return nil
	})
	return counts, err
}

// Groups implements [admin.DeadLetters].
func (s *DB) Groups(ctx context.Context, filter admin.Filter, sample, limit int) (admin.Groups, error) {
	var groups admin.Groups
	err := s.locked(ctx, func(time.Time) error {
		var newest []feeds.Deferred
		for _, d := range slices.Backward(s.choose(filter)) {
			if len(newest) == sample {
				break
			}
			newest = append(newest, *d)
		}
		all := len(s.choose(filter)) == len(newest)
		groups = admin.Groups{Sampled: len(newest), All: all, Groups: admin.GroupErrors(newest, limit)}
		return nil
	})
	return groups, err
}

// Blocked implements [admin.DeadLetters].
func (s *DB) Blocked(ctx context.Context, feed string, limit int) ([]admin.BlockedKey, error) {
	var blocked []admin.BlockedKey
	err := s.locked(ctx, func(time.Time) error {
		for name, a := range s.deferredByName() {
			if feed != "" && feed != name {
				continue
			}
			heads := make(map[string]int) // by key: index in blocked
			for _, d := range *a {
				key := d.OrderKey()
				if !blocks(d, key) {
					continue
				}
				if i, ok := heads[key]; ok {
					blocked[i].Waiting++
					blocked[i].Since = earlier(blocked[i].Since, d.DeferredAt)
					continue
				}
				heads[key] = len(blocked)
				b := admin.BlockedKey{Feed: name, Key: key, Since: d.DeferredAt, Head: copyOf(d)}
				b.Head.Payload = nil
				blocked = append(blocked, b)
			}
		}
		return nil
	})
	slices.SortFunc(blocked, func(a, b admin.BlockedKey) int {
		return cmp.Or(a.Since.Compare(b.Since), inOrder(&a.Head, &b.Head))
	})
	return blocked[:min(len(blocked), limit)], err
}

// Act implements [admin.DeadLetters]. If no message matches, it records nothing.
func (s *DB) Act(ctx context.Context, by admin.By, act admin.Act, filter admin.Filter, limit int) (int, error) {
	if act.From() == nil {
		return 0, fmt.Errorf("memory: unknown act %q", act)
	}
	var done []*feeds.Deferred
	err := s.locked(ctx, func(now time.Time) error {
		for _, d := range s.choose(filter) {
			if act == admin.Retry && d.Bare {
				continue // there is no content to send
			}
			if slices.Contains(act.From(), d.Status) && (limit <= 0 || len(done) < limit) {
				done = append(done, d)
			}
		}
		if len(done) == 0 {
			return nil
		}
		e := entryOf(by, string(act), filter.Feed, now)
		if len(done) == 1 {
			e.Feed = done[0].Feed
		}
		e.Count, e.Target, e.Before = len(done), describeFilter(filter), describe(done)
		for _, d := range done {
			s.do(act, d, now)
		}
		if act != admin.Discard {
			e.After = describe(done)
		}
		s.record(e)
		return nil
	})
	return len(done), err
}

func (s *DB) do(act admin.Act, d *feeds.Deferred, now time.Time) {
	if act == admin.Retry {
		retryNow(d, now)
		return
	}
	a := s.deferredByName()[d.Feed]
	key := d.OrderKey()
	if l := s.ledgers[d.Feed]; l != nil && act != admin.Skip {
		s.excludeDeferred(l, d) // a relay that takes over may read it again
	}
	promote := blocks(d, key)
	d.Blocking, d.Name, d.AvailableAt = false, "", time.Time{}
	switch act {
	case admin.Skip:
		d.Status = feeds.StatusDead
	case admin.Park:
		d.Status = feeds.StatusParked
	case admin.Discard:
		a.remove(d)
	default: // Retry is handled above
	}
	if promote {
		a.promote(key, now)
	}
}

// Edit implements [admin.DeadLetters].
func (s *DB) Edit(ctx context.Context, by admin.By, feed string, id postrider.ID, edited postrider.Message) error {
	return s.locked(ctx, func(now time.Time) error {
		found := s.choose(admin.Filter{Feed: feed, ID: id, Statuses: []feeds.Status{feeds.StatusDead, feeds.StatusParked}})
		if len(found) == 0 {
			return fmt.Errorf("memory: feed %s has no dead or parked message %s: %w", feed, id, admin.ErrNoMessage)
		}
		d, m := found[0], found[0].Message
		if d.Bare {
			return admin.ErrBare
		}
		edited = clone(edited)
		m.Type, m.Topic, m.RoutingKey, m.ContentType = edited.Type, edited.Topic, edited.RoutingKey, edited.ContentType
		m.Headers, m.Payload = edited.Headers, edited.Payload
		if err := m.Validate(); err != nil {
			return err
		}
		e := entryOf(by, "edit", d.Feed, now)
		e.Count, e.Target, e.Before = 1, map[string]any{"id": id.String()}, describe(found[:1])
		d.Message = m
		retryNow(d, now)
		e.After = describe(found[:1])
		s.record(e)
		return nil
	})
}

// choose returns the deferred messages that match, by feed and in the order of the log. The caller
// holds the lock.
func (s *DB) choose(filter admin.Filter) []*feeds.Deferred {
	var chosen []*feeds.Deferred
	for _, a := range s.deferredByName() {
		seen := make(map[string]bool) // keys that an earlier message blocks
		for _, d := range *a {
			key := d.OrderKey()
			head := d.Blocking && !seen[key]
			seen[key] = seen[key] || blocks(d, key)
			if filter.Matches(d) && (head || !filter.Head) {
				chosen = append(chosen, d)
			}
		}
	}
	slices.SortFunc(chosen, inOrder)
	return chosen
}

// deferredByName returns the deferred messages of all feeds and consumers. The caller holds the
// lock.
func (s *DB) deferredByName() map[string]*deferredList {
	all := make(map[string]*deferredList, len(s.ledgers)+len(s.inboxes))
	for name, l := range s.ledgers {
		all[name] = &l.deferred
	}
	for name, r := range s.inboxes {
		all[inbox.Feed(name)] = &r.deferred
	}
	return all
}

func inOrder(a, b *feeds.Deferred) int {
	return cmp.Or(cmp.Compare(a.Feed, b.Feed), cmp.Compare(a.Seq, b.Seq))
}
