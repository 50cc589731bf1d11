package memory

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/store/feeds"
)

var _ inbox.Store[*Tx] = (*Inbox)(nil)

// Inbox is the consumer's side of a [DB].
type Inbox struct{ store *DB }

// received is the state of one consumer: recorded and deferred messages.
type received struct {
	created   time.Time
	last      time.Time // when it last recorded a message
	heard     time.Time // last heartbeat of a process of the consumer
	process   string    // the process of the last heartbeat
	ids       map[postrider.ID]*receipt
	forgotten inbox.Forgotten
	deferred  deferredList
	busy      map[int64]bool // by seq: messages that are being retried
}

// receipt is a received message. The channel open is closed and set to nil when its transaction
// ends.
type receipt struct {
	at   time.Time
	open chan struct{}
}

// Open implements [inbox.Store].
func (i *Inbox) Open(ctx context.Context, consumer string) (time.Duration, error) {
	err := i.store.locked(ctx, func(now time.Time) error {
		if i.store.inboxes[consumer] == nil {
			i.store.inboxes[consumer] = &received{
				created: now, ids: make(map[postrider.ID]*receipt), busy: make(map[int64]bool),
				forgotten: inbox.Forgotten{Began: now.Add(-i.store.memory)},
			}
		}
		return nil
	})
	return i.store.memory, err
}

// Heard implements [inbox.Store].
func (i *Inbox) Heard(ctx context.Context, consumer, process string) error {
	return i.store.locked(ctx, func(now time.Time) error {
		r := i.store.inboxes[consumer]
		r.heard, r.process = now, process
		return nil
	})
}

// Claim implements [inbox.Store].
func (i *Inbox) Claim(ctx context.Context, tx *Tx, consumer string, id postrider.ID) (fresh bool, err error) {
	if _, err := i.Open(ctx, consumer); err != nil {
		return false, err
	}
	v, err := i.claim(ctx, tx, consumer, postrider.Message{ID: id}, false)
	if v == inbox.Late {
		return false, inbox.ErrLate
	}
	return v == inbox.Handled, err
}

// claim waits until any other transaction that has claimed the message has ended.
func (i *Inbox) claim(ctx context.Context, tx *Tx, consumer string, m postrider.Message, late bool) (v inbox.Verdict, err error) {
	for {
		var open chan struct{}
		err = i.store.locked(ctx, func(now time.Time) error {
			r := i.store.inboxes[consumer]
			switch known := r.ids[m.ID]; {
			case known != nil && known.open != nil:
				open = known.open
			case known != nil:
				v = inbox.Repeated
			case !late && (i.ahead(m.ID, now) || r.forgotten.Late(m.ID.Time())):
				v = inbox.Late
			case r.deferred.head(m.OrderKey()) != nil:
				v = inbox.Waiting
			default:
				v = inbox.Handled
				return r.record(tx, m.ID, now)
			}
			return nil
		})
		if open == nil || err != nil {
			return v, err
		}
		select {
		case <-open:
		case <-ctx.Done():
			return v, ctx.Err()
		}
	}
}

// ahead reports whether an ID is from too far in the future: its record would be forgotten before
// that time comes.
func (i *Inbox) ahead(id postrider.ID, now time.Time) bool {
	return id.Time().Sub(now) > i.store.memory/7
}

// record records a message as received if tx commits. The caller holds the lock.
func (r *received) record(tx *Tx, id postrider.ID, now time.Time) error {
	e := &receipt{now, make(chan struct{})}
	err := tx.stage(
		func() { close(e.open); e.open = nil; r.last = now },
		func() { close(e.open); delete(r.ids, id) })
	if err == nil {
		r.ids[id] = e
	}
	return err
}

// Handle implements [inbox.Store].
func (i *Inbox) Handle(ctx context.Context, consumer string, msgs []postrider.Message, late bool, work inbox.Work[*Tx]) ([]inbox.Verdict, error) {
	// Claim in one global order, so that two batches cannot deadlock.
	places := make([]int, len(msgs))
	for n := range places {
		places[n] = n
	}
	slices.SortStableFunc(places, func(a, b int) int { return bytes.Compare(msgs[a].ID[:], msgs[b].ID[:]) })
	verdicts := make([]inbox.Verdict, len(msgs))
	var failed error
	err := i.store.Do(ctx, func(ctx context.Context, tx *Tx) error {
		var fresh []int
		for k, n := range places {
			var err error
			m := msgs[n]
			if k > 0 && m.ID == msgs[places[k-1]].ID {
				verdicts[n] = inbox.Repeated
				continue
			}
			if verdicts[n], err = i.claim(ctx, tx, consumer, m, late); err != nil {
				return err
			}
			switch verdicts[n] {
			case inbox.Handled:
				fresh = append(fresh, n)
			case inbox.Waiting:
				err = i.deferIn(ctx, tx, consumer, m, inbox.Deferral{Status: feeds.StatusWaiting, Blocking: true})
			case inbox.Late:
				err = i.deferIn(ctx, tx, consumer, m, inbox.Deferral{Status: feeds.StatusDead, Cause: inbox.ErrLate.Error()})
			case inbox.Repeated:
			}
			if err != nil {
				return err
			}
		}
		slices.Sort(fresh)
		if len(fresh) > 0 {
			failed = work(ctx, tx, fresh)
		}
		return failed
	})
	if failed != nil {
		return nil, &inbox.FailedError{Err: failed}
	}
	return verdicts, err
}

// Maintain implements [inbox.Store].
func (i *Inbox) Maintain(ctx context.Context) error {
	return i.store.locked(ctx, func(now time.Time) error {
		for _, r := range i.store.inboxes {
			maps.DeleteFunc(r.ids, func(id postrider.ID, e *receipt) bool {
				// Keep the record longer if the ID is from a clock that is ahead: it becomes late only later.
				old := now.Sub(e.at) > i.store.memory && now.Sub(id.Time()) > i.store.memory
				if !old || e.open != nil || r.deferred.holds(id) {
					return false
				}
				r.forgotten.Note(id.Time())
				return true
			})
		}
		return nil
	})
}

// Defer implements [inbox.Store].
func (i *Inbox) Defer(ctx context.Context, consumer string, m postrider.Message, back inbox.Deferral) error {
	return i.store.Do(ctx, func(ctx context.Context, tx *Tx) error { return i.deferIn(ctx, tx, consumer, m, back) })
}

// deferIn defers a message when tx commits, unless another transaction has recorded it.
func (i *Inbox) deferIn(ctx context.Context, tx *Tx, consumer string, m postrider.Message, back inbox.Deferral) error {
	return i.store.locked(ctx, func(now time.Time) error {
		r := i.store.inboxes[consumer]
		if r.ids[m.ID] != nil {
			return nil
		}
		if err := r.record(tx, m.ID, now); err != nil {
			return err
		}
		d := &feeds.Deferred{
			Message: clone(m), Feed: inbox.Feed(consumer), Status: back.Status, Blocking: back.Blocking && m.OrderKey() != "",
			Attempts: back.Attempts, LastError: back.Cause, EnqueuedAt: now, DeferredAt: now,
		}
		return tx.stage(func() {
			i.store.written++
			d.Seq = i.store.written
			head := r.deferred.head(m.OrderKey())
			switch {
			case d.Status == feeds.StatusRetry && d.Blocking && head != nil:
				d.Status = feeds.StatusWaiting
			case d.Status == feeds.StatusRetry:
				d.TriedAt, d.AvailableAt = now, now.Add(back.Delay)
			case d.Status == feeds.StatusDead:
				d.TriedAt = now
			case head == nil: // the message that it would wait for is gone
				retryNow(d, now)
			}
			r.deferred.insert(d)
		}, nil)
	})
}

var errHandled = errors.New("memory: an operator has already handled the message")

// Retry implements [inbox.Store].
func (i *Inbox) Retry(ctx context.Context, consumer string, work func(context.Context, *Tx, feeds.Deferred) error, judge func(feeds.Deferred, error) inbox.Deferral) (inbox.Attempt, error) {
	var d *feeds.Deferred
	a := inbox.Attempt{Next: -1}
	err := i.store.locked(ctx, func(now time.Time) error {
		r := i.store.inboxes[consumer]
		d, a.Next = r.due(now)
		return nil
	})
	if d == nil || err != nil {
		return a, err
	}
	a.Found = true
	defer func() {
		i.store.mu.Lock()
		delete(i.store.inboxes[consumer].busy, d.Seq)
		i.store.mu.Unlock()
	}()
	err = i.store.Do(ctx, func(ctx context.Context, tx *Tx) error {
		if a.Failed = work(ctx, tx, *d); a.Failed != nil {
			return a.Failed
		}
		return i.conclude(ctx, consumer, tx, d, feeds.Conclusion{Seq: d.Seq, Delivered: true})
	})
	if a.Failed != nil {
		s := judge(*d, a.Failed)
		err = i.store.Do(ctx, func(ctx context.Context, tx *Tx) error {
			return i.conclude(ctx, consumer, tx, d, feeds.Conclusion{
				Seq: d.Seq, Status: s.Status, Attempts: s.Attempts, Delay: s.Delay, Cause: s.Cause,
			})
		})
	}
	if errors.Is(err, errHandled) {
		err = nil
	}
	return a, err
}

// due returns a copy of the first due message and marks it as busy; or nil and the time until one
// is due.
func (r *received) due(now time.Time) (*feeds.Deferred, time.Duration) {
	next := time.Duration(-1)
	for _, d := range r.deferred {
		if d.AvailableAt.IsZero() || r.busy[d.Seq] {
			continue
		}
		wait := d.AvailableAt.Sub(now)
		if wait <= 0 {
			r.busy[d.Seq] = true
			c := copyOf(d)
			return &c, 0
		}
		if next < 0 || wait < next {
			next = wait
		}
	}
	return nil, next
}

// conclude records the outcome of an attempt when tx commits.
func (i *Inbox) conclude(ctx context.Context, consumer string, tx *Tx, taken *feeds.Deferred, c feeds.Conclusion) error {
	return i.store.locked(ctx, func(now time.Time) error {
		r := i.store.inboxes[consumer]
		if d := r.deferred.get(taken.Seq); d == nil || !d.AvailableAt.Equal(taken.AvailableAt) {
			return errHandled
		}
		return tx.stage(func() { r.deferred.conclude([]feeds.Conclusion{c}, now) }, nil)
	})
}

// holds reports whether a message is deferred.
func (a deferredList) holds(id postrider.ID) bool {
	return slices.ContainsFunc(a, func(d *feeds.Deferred) bool { return d.ID == id })
}
