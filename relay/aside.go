package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/postrider/postrider"
)

const (
	// ownFaults is how often a message must fail while others arrive before it is taken to be at fault itself, and
	// loneFaults how often if there are no others that could tell, and no more than fewFailures fail: then it may as well
	// be the destination.
	ownFaults   = 3
	loneFaults  = 30
	fewFailures = 10

	// deadlyStarts is how often a message may be begun in vain, by relays that died over it, before nobody tries again.
	deadlyStarts = 2
)

// aside is what a lane knows of the messages of its shard that were set aside. Whether a key is blocked must not change
// between a look and what follows from it, so the lock is held over the calls of the store that change it.
type aside struct {
	mu      turn
	blocked map[uint64]bool // hashes of keys: their messages are set aside too
	wanted  []deferral      // to be set aside as soon as the store answers
	holding map[uint64]bool // hashes of the keys of wanted
}

// deferral is a message of the window that is to be set aside.
type deferral struct {
	pos int
	key uint64
	postrider.Deferral
}

// load finds out which keys are blocked. It reports false if the lane ends before it knows.
func (l *lane) load() bool {
	pause := backoff{min: l.t.r.cfg.RetryMin, max: l.t.r.cfg.RetryMax}
	trouble := outage{log: l.trouble.log, what: "asking for blocked keys"}
	for !l.ending() && l.t.ctx.Err() == nil {
		call, cancel := context.WithTimeout(l.t.ctx, callTimeout)
		keys, err := l.t.feed.Blocked(call, l.shard)
		cancel()
		if err == nil {
			trouble.ok()
			l.aside.mu.Lock()
			defer l.aside.mu.Unlock()
			l.aside.blocked = make(map[uint64]bool, len(keys))
			for _, key := range keys {
				l.aside.blocked[hashText(key)] = true
			}
			l.blocked.Store(int64(len(l.aside.blocked)))
			return true
		}
		trouble.fail(err)
		sleep(l.ctx, pause.next())
	}
	return false
}

// sort picks out those messages of a batch that cannot go in the order of the log, and those that have come far enough, canaries
// and what is known to have arrived: it reports whether there were any of these. The batch has just entered the window, with the
// message at a position as its first.
func (l *lane) sort(b *postrider.Batch, at int) (arrived bool) {
	a := &l.aside
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range b.Messages {
		m := &b.Messages[i]
		switch {
		case m.Type == postrider.CanaryType || l.known[m.ID]:
			delete(l.known, m.ID)
			l.window.setAside(at + i)
			l.window.release(at + i)
			arrived = true
		case !m.DeliverAfter.IsZero():
			l.want(at+i, 0, postrider.Deferral{Batch: b, Index: i, Status: postrider.StatusScheduled})
		case len(a.blocked)+len(a.holding) == 0:
		default:
			if key := hashKey(m); a.blocked[key] || a.holding[key] {
				l.want(at+i, key, postrider.Deferral{Batch: b, Index: i, Status: postrider.StatusWaiting, Blocking: true})
			}
		}
	}
	return arrived
}

// want takes a message out of the window's order, to be set aside. The caller holds the lock.
func (l *lane) want(pos int, key uint64, d postrider.Deferral) {
	l.window.setAside(pos)
	l.aside.wanted = append(l.aside.wanted, deferral{pos, key, d})
	if key == 0 {
		return
	}
	if l.aside.holding == nil {
		l.aside.holding = make(map[uint64]bool)
	}
	l.aside.holding[key] = true
}

// refuse sets a message aside that failed by its own fault and, where order is strict, those of its key behind it.
func (l *lane) refuse(pos int, attempts int, err error) {
	r := l.t.r
	batch, index := l.window.place(pos)
	d := postrider.Deferral{Batch: batch, Index: index, Attempts: attempts, Cause: err.Error()}
	d.Status, d.Delay = r.cfg.verdict(attempts, err)
	key := l.window.order.at(pos).key
	d.Blocking = key != 0 && r.cfg.Order == Strict
	if m := &batch.Messages[index]; d.Status == postrider.StatusDead {
		r.died(l.shard, m, attempts, err)
	} else {
		r.refused(l.shard, m, attempts, err)
	}
	l.aside.mu.Lock()
	defer l.aside.mu.Unlock()
	if !d.Blocking {
		l.want(pos, 0, d)
		return
	}
	behind := l.window.order.behind(pos)
	l.want(pos, key, d)
	for _, p := range behind {
		batch, index := l.window.place(p)
		l.want(p, key, postrider.Deferral{Batch: batch, Index: index, Status: postrider.StatusWaiting, Blocking: true})
	}
}

// setAside tells the store of what is to be set aside. That may be tried again at the returned time; the zero time means
// that nothing is left.
func (l *lane) setAside(now time.Time) time.Time {
	a := &l.aside
	if len(a.wanted) == 0 { // only the lane's own goroutine adds to it
		return time.Time{}
	}
	if now.Before(l.asideAt) {
		return l.asideAt
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	n := min(len(a.wanted), l.t.r.cfg.BatchSize)
	msgs := make([]postrider.Deferral, n)
	for i, d := range a.wanted[:n] {
		msgs[i] = d.Deferral
	}
	call, cancel := context.WithTimeout(l.t.ctx, callTimeout)
	err := l.t.feed.Defer(call, msgs)
	cancel()
	if err != nil {
		l.asideTrouble.fail(err)
		l.asideAt = now.Add(l.asidePause.next())
		return l.asideAt
	}
	l.asideTrouble.ok()
	l.asidePause.reset()
	l.t.r.count.deferred.Add(int64(n))
	for _, d := range a.wanted[:n] {
		l.window.release(d.pos)
		if d.key != 0 {
			a.blocked[d.key] = true
		}
	}
	l.blocked.Store(int64(len(a.blocked)))
	a.wanted = append(a.wanted[:0], a.wanted[n:]...)
	clear(a.holding)
	for _, d := range a.wanted {
		if d.key != 0 {
			a.holding[d.key] = true
		}
	}
	l.advance()
	l.t.attend()
	if len(a.wanted) > 0 {
		return now
	}
	return time.Time{}
}

// freed unblocks keys for which nothing is set aside any more. The caller holds the lock.
func (l *lane) freed(keys []string) {
	for _, key := range keys {
		if h := hashText(key); !l.aside.holding[h] {
			delete(l.aside.blocked, h)
		}
	}
	l.blocked.Store(int64(len(l.aside.blocked)))
}

var errDeadly = errors.New("relay: relays have died while they sent it")

// caution has messages sent one by one, because one of them may be deadly.
type caution struct {
	left  int           // how many
	begun map[int64]int // those that were begun by this lane, and how many relays had begun them in vain
}

// begin has the start of a message noted before it is sent, unless an attempt of this lane has ended already. It returns how many
// relays have begun it in vain.
func (c *caution) begin(ctx context.Context, feed postrider.Feed, id int64, start postrider.Start) (deaths int, err error) {
	if deaths, ok := c.begun[id]; ok {
		return deaths, nil
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	started, err := feed.Suspect(call, start)
	if err != nil {
		return 0, err
	}
	if c.begun == nil {
		c.begun = make(map[int64]int)
	}
	c.begun[id] = started - 1
	c.left--
	return started - 1, nil
}

// probe is asked before a message is sent of which a crash is suspected. It reports false if that has to wait.
func (l *lane) probe(now time.Time) bool {
	pos := l.window.only()
	batch, index := l.window.place(pos)
	deaths, err := l.careful.begin(l.t.ctx, l.t.feed, int64(pos), postrider.Start{Batch: batch, Index: index})
	if err != nil {
		l.asideTrouble.fail(err)
		l.calm = now.Add(l.asidePause.next())
		return false
	}
	l.mortal.Store(l.careful.left > 0)
	if deaths < deadlyStarts {
		return true
	}
	l.window.track()
	l.refuse(pos, l.t.r.cfg.MaxAttempts, deadly(deaths))
	return false
}

// deadly says why a message that relays have died over is not sent.
func deadly(deaths int) error { return fmt.Errorf("%w (%d times)", errDeadly, deaths) }
