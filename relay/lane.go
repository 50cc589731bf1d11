package relay

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/postrider/postrider"
)

// lane publishes the messages of one shard, in order, for as long as the relay holds the shard.
type lane struct {
	t     *tenure
	shard int
	wake  chan struct{}    // holds one token: work, a renewed lease or the order to end has arrived
	after <-chan struct{}  // closed when the lane that had the shard before has ended; nil if there was none
	done  chan struct{}    // closed when the lane has ended
	slice *postrider.Slice // what the lane is about, if that is a part of a shard

	ctx      context.Context // for Publish
	cancel   context.CancelFunc
	draining atomic.Bool  // finish what has been begun, then end
	killed   atomic.Bool  // end; nothing that the lane still does matters
	buffered atomic.Int64 // messages handed to the lane that are not in the confirmed prefix
	starving atomic.Bool  // the reader wants to know when there is room
	stuck    atomic.Bool  // all that the lane has waits: only other messages could be sent
	loaded   atomic.Bool  // the lane knows which keys are blocked
	blocked  atomic.Int64 // how many these are
	expired  atomic.Bool  // the lane waits for its lease to be renewed
	failing  atomic.Bool  // the last call confirmed nothing
	mortal   atomic.Bool  // a message may kill the process: what is confirmed is to be settled before the next one
	behind   atomic.Int64 // when there was last known to be more than had been read

	attended  turn    // held while something is sent that was set aside
	inherited caution // with what was set aside when the shard was taken; belongs to the attendants

	split   string // the tenant to be read apart when the lane has ended; set before that
	partner *lane  // the one to be read together with when both have ended; guarded by the lock of the tenure

	mu      sync.Mutex
	inbox   []*postrider.Batch // batches that have not entered the window
	batch   *postrider.Batch   // what has been confirmed: the first n messages of batch, and all before it;
	n       int                // batch is nil when that has been settled
	version uint64             // of (batch, n)
	renewed time.Time          // when the last call that renewed the lease was sent; zero if there was none

	// What follows belongs to the lane's goroutine.
	window   window
	arrived  []*postrider.Batch // memory for the next inbox
	trouble  outage
	pause    backoff
	calm     time.Time // no call before then
	patience time.Time // until when a draining lane hopes
	arrivals uint32    // calls that have confirmed something
	watched  int       // the first unconfirmed message at the last look at tenants
	watchAt  time.Time // when to look again
	memory   memory
	known    map[postrider.ID]bool // messages that have arrived, though the store has forgotten it
	careful  caution               // with the messages of the window, by position

	aside        aside
	asideAt      time.Time // nothing is set aside before then
	asidePause   backoff
	asideTrouble outage
}

// newLane makes a lane without a lease. Its shard may have been taken long ago, by a Balance whose answer was lost: the first
// Settle tells that it is still the relay's.
func newLane(t *tenure, shard int) *lane {
	cfg := &t.r.cfg
	l := &lane{
		t:        t,
		shard:    shard,
		wake:     make(chan struct{}, 1),
		done:     make(chan struct{}),
		window:   newWindow(t.r.keepsOrder, cfg.BatchSize),
		trouble:  outage{log: t.r.log.With("shard", shard), what: "publishing"},
		attended: make(turn, 1),
		aside:    aside{mu: make(turn, 1)},
		pause:    backoff{min: cfg.RetryMin, max: cfg.RetryMax},

		asidePause:   backoff{min: cfg.RetryMin, max: cfg.RetryMax},
		asideTrouble: outage{log: t.r.log.With("shard", shard), what: "setting messages aside"},
	}
	l.ctx, l.cancel = context.WithCancel(t.hard)
	return l
}

// turn is a lock that is held over calls of the store or of the publisher, however long these take. It is a channel of one,
// because in virtual time (testing/synctest) the clock stands still while anybody waits for a mutex.
type turn chan struct{}

func (t turn) Lock()   { t <- struct{}{} }
func (t turn) Unlock() { <-t }

// drain makes the lane end as soon as that leaves no confirmed message behind an unconfirmed one, or when DrainTimeout
// has passed: a message that fails for ever must not keep its shard from another relay.
func (l *lane) drain() {
	l.draining.Store(true)
	signal(l.wake)
}

// kill makes the lane end as soon as it can, and a Publish under way too if cut is set.
func (l *lane) kill(cut bool) {
	l.killed.Store(true)
	if cut {
		l.cancel()
	}
	signal(l.wake)
}

func (l *lane) ending() bool {
	return l.draining.Load() || l.killed.Load() || l.ctx.Err() != nil
}

// room is how many messages the lane may be given.
func (l *lane) room() int { return l.t.r.cfg.ReadAhead - int(l.buffered.Load()) }

// spacious is false while the room is not worth a read: pages must not get tiny, nor the lane run dry. A lane that is
// stuck has nothing better to do than to take what there is room for.
func (l *lane) spacious() bool {
	room := l.room()
	return room >= (l.t.r.cfg.ReadAhead+1)/2 || room > 0 && l.stuck.Load()
}

// hasRoom reports whether the reader should read for the lane. If not, the lane tells it later.
func (l *lane) hasRoom() bool {
	if l.ending() {
		return false
	}
	if l.spacious() {
		return true
	}
	l.starving.Store(true)
	return l.spacious() // room that was made meanwhile may not have been told
}

// push hands the lane what was read for it.
func (l *lane) push(b *postrider.Batch) {
	if l.ending() {
		return
	}
	l.mu.Lock()
	l.inbox = append(l.inbox, b)
	l.mu.Unlock()
	l.buffered.Add(int64(len(b.Messages)))
	signal(l.wake)
}

func (l *lane) run() {
	defer signal(l.t.drained)
	defer close(l.done)
	defer l.cancel()
	if l.after != nil {
		<-l.after
	}
	if !l.load() {
		return
	}
	l.loaded.Store(true)
	for !l.killed.Load() && l.ctx.Err() == nil {
		now := time.Now()
		draining := l.draining.Load()
		if !draining {
			l.take()
			l.watch(now)
		}
		again := l.setAside(now) // which may move the window on, so it comes before the seam
		end := l.window.end      // nothing from there on is sent
		if draining {
			if l.patience.IsZero() {
				l.patience = now.Add(l.t.r.cfg.DrainTimeout)
			}
			if end = l.window.seam(l.patience); end == l.window.first || now.After(l.patience) {
				return
			}
		}
		call, due := l.choose(now, end)
		if len(call) == 0 {
			if due.IsZero() {
				l.failing.Store(false) // whatever has failed is set aside: it says nothing of the destination any more
			}
			l.wait(now, earlier(due, again))
			continue
		}
		deadline, ok := l.fence(now)
		if !ok {
			continue
		}
		errs, ok := l.publish(call, now, deadline)
		if ok {
			l.memory.note(call, errs, time.Now())
		}
		if l.killed.Load() {
			return
		}
		if ok {
			l.pace(time.Since(now))
			l.judge(errs)
		}
	}
}

// publish sends the messages of a call, unless one that may be deadly has to wait.
func (l *lane) publish(call []postrider.Message, now, deadline time.Time) (errs []error, ok bool) {
	if l.careful.left > 0 {
		l.t.r.careful <- struct{}{}
		defer func() { <-l.t.r.careful }()
		if !l.probe(now) {
			return nil, false
		}
	}
	ctx, cancel := context.WithDeadline(l.ctx, deadline)
	defer cancel()
	return l.t.r.pub.Publish(ctx, call), true
}

// earlier returns the earlier one of two times, of which the zero time is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// slowCall is the longest that a call should take. A slow destination gets fewer messages at a time: other lanes, and what
// is to overtake, wait less.
const slowCall = 200 * time.Millisecond

// pace fits the number of messages in a call to what the last one took.
func (l *lane) pace(took time.Duration) {
	w := &l.window
	switch full := w.size == w.limit; {
	case took > slowCall:
		w.limit = max(w.limit/2, 1)
	case full && took < slowCall/4:
		w.limit = min(w.limit*2, l.t.r.cfg.BatchSize)
	}
}

// take moves what was pushed into the window.
func (l *lane) take() {
	l.mu.Lock()
	l.inbox, l.arrived = l.arrived, l.inbox
	l.mu.Unlock()
	arrived := false
	for i, b := range l.arrived {
		at := l.window.end
		l.window.add(b)
		arrived = l.sort(b, at) || arrived
		l.arrived[i] = nil
	}
	l.arrived = l.arrived[:0]
	if arrived {
		l.advance()
	}
}

// choose returns the messages of the next call or, if there are none, when to look again; the zero time means that only
// a push can help.
func (l *lane) choose(now time.Time, end int) ([]postrider.Message, time.Time) {
	if now.Before(l.calm) {
		return nil, l.calm
	}
	limit := l.window.limit
	if l.careful.left > 0 {
		l.window.limit = 1
	}
	call, due := l.window.pick(now, end, l.failing.Load())
	l.window.limit = limit
	if stuck := !due.IsZero(); stuck != l.stuck.Load() {
		l.stuck.Store(stuck)
		l.tell()
	}
	return call, due
}

// tell lets the reader know of room that it waits for.
func (l *lane) tell() {
	if l.starving.Load() && l.spacious() && l.starving.CompareAndSwap(true, false) {
		signal(l.t.more)
	}
}

// safeUntil returns until when messages may be sent. A Publish is only begun with a margin of time for it, lest it is cut
// and its outcome unknown: where too little of the lease is left, it returns false.
func (l *lane) safeUntil(now time.Time) (deadline time.Time, ok bool) {
	cfg := &l.t.r.cfg
	left := cfg.Lease - cfg.margin() - l.age(now)
	return now.Add(min(cfg.PublishTimeout, left)), left > cfg.margin()
}

// fence is safeUntil for the lane itself: where too little of the lease is left, it waits for news of the lease.
func (l *lane) fence(now time.Time) (deadline time.Time, ok bool) {
	age := l.age(now)
	if deadline, ok = l.safeUntil(now); ok {
		return deadline, true
	}
	l.expired.Store(true)
	if l.age(now) == age { // no renewal has come meanwhile
		signal(l.t.settled)
		select {
		case <-l.wake:
		case <-l.ctx.Done():
		}
	}
	l.expired.Store(false)
	return time.Time{}, false
}

// wait pauses the lane until a point in time, if it is not the zero time, or until something happens.
func (l *lane) wait(now, until time.Time) {
	var due <-chan time.Time
	if !until.IsZero() {
		t := time.NewTimer(until.Sub(now))
		defer t.Stop()
		due = t.C
	}
	select {
	case <-due:
	case <-l.wake:
	case <-l.ctx.Done():
	}
}

// advance moves the confirmed prefix as far as it goes.
func (l *lane) advance() {
	n, batch, done := l.window.advance()
	if n == 0 {
		return
	}
	l.mu.Lock()
	l.batch, l.n = batch, done
	l.version++
	l.mu.Unlock()
	l.buffered.Add(int64(-n))
	l.tell()
	signal(l.t.settled)
}

// unsettled reports whether something was confirmed that has not been settled.
func (l *lane) unsettled() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.batch != nil
}

func (l *lane) mark() progress {
	l.mu.Lock()
	defer l.mu.Unlock()
	return progress{postrider.Mark{Shard: l.shard, Batch: l.batch, Done: l.n}, l, l.version}
}

// renew notes that a Settle sent at the given time has succeeded, with the given version of the mark.
func (l *lane) renew(at time.Time, version uint64) {
	l.mu.Lock()
	l.renewed = at
	if l.version == version {
		l.batch, l.n = nil, 0
	}
	l.mu.Unlock()
	if l.expired.Load() {
		signal(l.wake)
	}
}

// age returns how long ago the lease was renewed. The monotonic clock stands still while a machine sleeps, and the wall
// clock can be set back: the one that has gone further counts.
func (l *lane) age(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(now.Sub(l.renewed), now.Round(0).Sub(l.renewed.Round(0)))
}
