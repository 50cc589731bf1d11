package relay

import (
	"context"
	"time"

	"github.com/postrider/postrider/store/feeds"
)

// dueMax is the maximum time between two requests for deferred messages while some exist that are
// not due: an operator may have made one due at once.
const dueMax = 500 * time.Millisecond

// fetchDue passes deferred messages to the workers when they are due, until ctx ends.
func (t *epoch) fetchDue(ctx context.Context) {
	cfg := &t.cfg
	trouble := outage{log: t.log, what: "asking for deferred messages"}
	pause := backoff{policy: cfg.Outage}
	for ctx.Err() == nil {
		wait := time.Hour          // until a signal on dueWake
		if t.dueSome.Swap(false) { // reset first: the call may miss what is signalled from here on
			next, held, err := t.fetchDueOnce() //nolint:contextcheck // what has begun lasts as long as the epoch
			switch {
			case err != nil && (t.over(err) || t.ctx.Err() != nil):
				return
			case err != nil:
				trouble.fail(err)
				wait = pause.next()
				t.dueSome.Store(true)
			case next < 0 && !held:
				trouble.ok()
				pause.reset()
			default:
				trouble.ok()
				pause.reset()
				if wait = dueMax; next >= 0 {
					wait = min(max(next, time.Millisecond), dueMax)
				}
				t.dueSome.Store(true)
			}
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-t.dueWake:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// fetchDueOnce fetches the messages that the workers can send now. It returns the time until the next
// request, negative if no deferred message exists, and whether names are held, whose messages may
// become due.
func (t *epoch) fetchDueOnce() (next time.Duration, held bool, err error) {
	want := feeds.DueRequest{Limit: t.cfg.BatchSize, Bytes: t.cfg.Memory / 8}
	workers := make(map[int]*worker)
	some := false
	for _, w := range t.workers() {
		f := w.look()
		held = held || f.HeldNames > 0
		some = true
		if f.wantsDue && !w.ending() {
			want.Shards = append(want.Shards, w.shard)
			want.Held = append(want.Held, f.held...)
			workers[w.shard] = w
		}
	}
	if len(workers) == 0 {
		if some {
			return dueMax, held, nil
		}
		return -1, false, nil
	}
	call, cancel := context.WithTimeout(t.ctx, callTimeout)
	defer cancel()
	asked := time.Now()
	due, err := t.feed.Due(call, want)
	if err != nil {
		return 0, held, err
	}
	byShard := make(map[int][]feeds.Deferred)
	for _, d := range due.Messages {
		byShard[d.Shard] = append(byShard[d.Shard], d)
	}
	none := len(due.Messages) == 0 && due.Next < 0 && len(want.Held) == 0
	for number, w := range workers {
		if none {
			w.recall.noneDeferred()
		} else if msgs := byShard[number]; len(msgs) > 0 {
			w.hand(msgs, asked)
		}
	}
	if len(due.Messages) > 0 && due.Next < 0 {
		return dueMax, held, nil // there may be more than the limit
	}
	return due.Next, held, nil
}

// hand passes deferred messages, for which the store was asked at a time, to the worker. The worker
// requests no others until it has processed them.
func (w *worker) hand(msgs []feeds.Deferred, asked time.Time) {
	w.post(func(m *mailbox) {
		m.due, m.asked = append(m.due, msgs...), asked
		w.snapshot.wantsDue = false
	})
}
