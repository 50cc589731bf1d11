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
	wake  chan struct{}   // holds one token: work, a renewed lease or the order to end has arrived
	after <-chan struct{} // closed when the lane that had the shard before has ended; nil if there was none
	done  chan struct{}   // closed when the lane has ended

	ctx      context.Context // for Publish
	cancel   context.CancelFunc
	draining atomic.Bool  // finish what has been begun, then end
	killed   atomic.Bool  // end; nothing that the lane still does matters
	buffered atomic.Int64 // messages read and not confirmed
	starving atomic.Bool  // the reader wants to know when there is room
	expired  atomic.Bool  // the lane waits for its lease to be renewed

	mu      sync.Mutex
	queue   []*postrider.Batch // batches with unconfirmed messages
	head    int                // how many messages of queue[0] are confirmed
	batch   *postrider.Batch   // what has been confirmed: the first n messages of batch, and all before it;
	n       int                // batch is nil when that has been settled
	version uint64             // of (batch, n)
	renewed time.Time          // when the last call that renewed the lease was sent

	// What follows belongs to the lane's goroutine.
	chunk      chunk
	trouble    outage
	pause      backoff
	complained time.Time // when the log was last told of a refused message
}

func newLane(t *tenure, shard int, renewed time.Time) *lane {
	cfg := &t.r.cfg
	l := &lane{
		t:       t,
		shard:   shard,
		wake:    make(chan struct{}, 1),
		done:    make(chan struct{}),
		renewed: renewed,
		chunk:   chunk{keepsOrder: t.r.keepsOrder},
		trouble: outage{log: t.r.log.With("shard", shard), what: "publishing"},
		pause:   backoff{min: cfg.RetryMin, max: cfg.RetryMax},
	}
	l.ctx, l.cancel = context.WithCancel(t.hard)
	return l
}

// drain makes the lane end as soon as that leaves no confirmed message behind an unconfirmed one.
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

// spacious is false while the room is not worth a read: pages must not get tiny, nor the lane run dry.
func (l *lane) spacious() bool { return l.room() >= (l.t.r.cfg.ReadAhead+1)/2 }

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
	l.queue = append(l.queue, b)
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
	for !l.ending() {
		if msgs := l.next(); len(msgs) > 0 {
			l.deliver(msgs)
		} else {
			<-l.wake
		}
	}
}

// next returns the first unconfirmed messages, at most BatchSize.
func (l *lane) next() []postrider.Message {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 {
		return nil
	}
	limit := l.t.r.cfg.BatchSize
	first := l.queue[0].Messages[l.head:]
	if len(first) >= limit || len(l.queue) == 1 {
		return first[:min(limit, len(first))]
	}
	msgs := append(l.chunk.gathered[:0], first...)
	for _, b := range l.queue[1:] {
		msgs = append(msgs, b.Messages[:min(limit-len(msgs), len(b.Messages))]...)
		if len(msgs) == limit {
			break
		}
	}
	l.chunk.gathered = msgs
	return msgs
}

// deliver publishes messages until all are confirmed, or until the lane must end.
func (l *lane) deliver(msgs []postrider.Message) {
	c := &l.chunk
	c.begin(msgs)
	defer c.clear()
	for c.left > 0 {
		if l.killed.Load() || l.ctx.Err() != nil {
			return
		}
		draining := l.draining.Load()
		if draining && !c.torn() {
			return
		}
		now := time.Now()
		call, due := c.pick(now, draining)
		if len(call) == 0 {
			l.wait(due.Sub(now))
			continue
		}
		deadline, ok := l.fence(now)
		if !ok {
			continue
		}
		ctx, cancel := context.WithDeadline(l.ctx, deadline)
		errs := l.t.r.pub.Publish(ctx, call)
		cancel()
		if l.killed.Load() {
			return
		}
		l.judge(call, errs)
	}
}

// fence returns until when messages may be sent. Where too little of the lease is left, it waits for news of the lease
// and returns false. A Publish is only begun with a margin of time for it, lest it is cut and its outcome unknown.
func (l *lane) fence(now time.Time) (deadline time.Time, ok bool) {
	cfg := &l.t.r.cfg
	age := l.age(now)
	if left := cfg.Lease - cfg.margin() - age; left > cfg.margin() {
		return now.Add(min(cfg.PublishTimeout, left)), true
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

// wait pauses the lane for d, or until something happens.
func (l *lane) wait(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-l.wake:
	case <-l.ctx.Done():
	}
}

// judge takes note of what a Publish has returned.
func (l *lane) judge(call []postrider.Message, errs []error) {
	count := &l.t.r.count
	c := &l.chunk
	count.retried.Add(int64(c.repeated))
	confirmed, failed, cause := c.record(errs)
	count.published.Add(int64(confirmed))
	if confirmed > 0 {
		l.confirm(c.advance())
	}
	if failed == 0 {
		l.pause.reset()
		l.trouble.ok()
		return
	}
	count.failed.Add(int64(failed))

	refused := 0
	if confirmed > 0 {
		l.pause.reset()
	}
	pause := l.pause.next()
	now := time.Now()
	for i, at := range c.picked {
		err := answer(errs, i)
		switch {
		case err == nil:
		case postrider.ClassOf(err) == postrider.ClassPermanent:
			refused++
			c.hold(at, now.Add(l.refuse(&call[i], err)), refusedState)
		case postrider.ClassOf(err) == postrider.ClassUnavailable:
			c.hold(at, now.Add(pause), failedState)
		default: // perhaps the message is to blame: let others go first
			c.hold(at, now.Add(2*pause), failedState)
		}
	}
	count.refused.Add(int64(refused))
	if refused > 0 {
		l.pause.reset() // the destination is there
	}
	if failed > refused {
		l.trouble.fail(cause)
	}
}

// confirm moves the confirmed prefix by n messages.
func (l *lane) confirm(n int) {
	if n == 0 {
		return
	}
	l.mu.Lock()
	for rest := n; rest > 0; {
		b := l.queue[0]
		step := min(rest, len(b.Messages)-l.head)
		rest -= step
		l.head += step
		l.batch, l.n = b, l.head
		if l.head == len(b.Messages) {
			l.queue[0] = nil
			l.queue = l.queue[1:]
			l.head = 0
		}
	}
	l.version++
	l.mu.Unlock()
	l.buffered.Add(int64(-n))
	if l.starving.Load() && l.spacious() && l.starving.CompareAndSwap(true, false) {
		signal(l.t.more)
	}
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
