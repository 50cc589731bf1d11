package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/desk"
	"github.com/postrider/postrider/inbox"
)

var _ desk.Letters = (*Store)(nil)

// List implements [desk.Letters]. The feeds come by name.
func (s *Store) List(ctx context.Context, filter desk.Filter, after *postrider.Deferred, limit int) ([]postrider.Deferred, error) {
	var page []postrider.Deferred
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

// Count implements [desk.Letters].
func (s *Store) Count(ctx context.Context, filter desk.Filter, limit int) (map[postrider.Status]int, error) {
	counts := make(map[postrider.Status]int)
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

// Groups implements [desk.Letters].
func (s *Store) Groups(ctx context.Context, filter desk.Filter, sample, limit int) (desk.Groups, error) {
	var groups desk.Groups
	err := s.locked(ctx, func(time.Time) error {
		var newest []postrider.Deferred
		for _, d := range slices.Backward(s.choose(filter)) {
			if len(newest) == sample {
				break
			}
			newest = append(newest, *d)
		}
		all := len(s.choose(filter)) == len(newest)
		groups = desk.Groups{Sampled: len(newest), All: all, Groups: desk.GroupErrors(newest, limit)}
		return nil
	})
	return groups, err
}

// Blocked implements [desk.Letters].
func (s *Store) Blocked(ctx context.Context, feed string, limit int) ([]desk.BlockedKey, error) {
	var blocked []desk.BlockedKey
	err := s.locked(ctx, func(time.Time) error {
		for name, a := range s.asides() {
			if feed != "" && feed != name {
				continue
			}
			heads := make(map[string]int) // by key: the place in blocked
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
				b := desk.BlockedKey{Feed: name, Key: key, Since: d.DeferredAt, Head: copyOf(d)}
				b.Head.Payload = nil
				blocked = append(blocked, b)
			}
		}
		return nil
	})
	slices.SortFunc(blocked, func(a, b desk.BlockedKey) int {
		return cmp.Or(a.Since.Compare(b.Since), inOrder(&a.Head, &b.Head))
	})
	return blocked[:min(len(blocked), limit)], err
}

// Act implements [desk.Letters]. Where there is nothing to do, nothing is recorded.
func (s *Store) Act(ctx context.Context, by desk.By, act desk.Act, filter desk.Filter, limit int) (int, error) {
	if act.From() == nil {
		return 0, fmt.Errorf("memory: there is no act %q", act)
	}
	var done []*postrider.Deferred
	err := s.locked(ctx, func(now time.Time) error {
		for _, d := range s.choose(filter) {
			if act == desk.Retry && d.Bare {
				continue // there is nothing to send
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
		if act != desk.Discard {
			e.After = describe(done)
		}
		s.record(e)
		return nil
	})
	return len(done), err
}

func (s *Store) do(act desk.Act, d *postrider.Deferred, now time.Time) {
	if act == desk.Retry {
		again(d, now)
		return
	}
	a := s.asides()[d.Feed]
	key := d.OrderKey()
	if l := s.ledgers[d.Feed]; l != nil && act != desk.Skip {
		s.passOver(l, d) // a relay that takes over may read it once more
	}
	promote := blocks(d, key)
	d.Blocking, d.Name, d.AvailableAt = false, "", time.Time{}
	switch act {
	case desk.Skip:
		d.Status = postrider.StatusDead
	case desk.Park:
		d.Status = postrider.StatusParked
	case desk.Discard:
		a.remove(d)
	default: // Retry is done above
	}
	if promote {
		a.promote(key, now)
	}
}

// Edit implements [desk.Letters].
func (s *Store) Edit(ctx context.Context, by desk.By, feed string, id postrider.ID, edited postrider.Message) error {
	return s.locked(ctx, func(now time.Time) error {
		found := s.choose(desk.Filter{Feed: feed, ID: id, Statuses: []postrider.Status{postrider.StatusDead, postrider.StatusParked}})
		if len(found) == 0 {
			return fmt.Errorf("memory: feed %s has no dead or parked message %s: %w", feed, id, desk.ErrNoMessage)
		}
		d, m := found[0], found[0].Message
		if d.Bare {
			return desk.ErrBare
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
		again(d, now)
		e.After = describe(found[:1])
		s.record(e)
		return nil
	})
}

// choose returns what matches, by feed and in the order of the log. The caller holds the lock.
func (s *Store) choose(filter desk.Filter) []*postrider.Deferred {
	var chosen []*postrider.Deferred
	for _, a := range s.asides() {
		seen := make(map[string]bool) // keys that are blocked by a message further ahead
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

// asides returns all that is set aside, of feeds and of consumers, by name. The caller holds the lock.
func (s *Store) asides() map[string]*aside {
	all := make(map[string]*aside, len(s.ledgers)+len(s.inboxes))
	for name, l := range s.ledgers {
		all[name] = &l.aside
	}
	for name, r := range s.inboxes {
		all[inbox.Feed(name)] = &r.aside
	}
	return all
}

func inOrder(a, b *postrider.Deferred) int {
	return cmp.Or(cmp.Compare(a.Feed, b.Feed), cmp.Compare(a.Seq, b.Seq))
}
