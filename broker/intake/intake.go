// Package intake is the part that all consumers share. It hands received messages to a handler, in order per key, with a
// bound on how many are handled at a time, tries again what fails, and tells the broker's side which messages are done.
//
// A message holds a slot only while its handler runs. One that waits, for its next attempt or behind another one of its
// key, holds none, so that a failing or slow key does not hold up the others. How many may wait is bounded too.
package intake

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/retry"
)

// maxWaitingBytes is the most bytes of payload that wait, about: one message may be larger.
const maxWaitingBytes = 64 << 20

// Config tunes an [Intake]. The zero value works.
type Config struct {
	// Limit is the largest number of messages that are handled at a time. Defaults to 64.
	Limit int
	// Waiting is the largest number of messages that wait, for their next attempt or behind another one of their key. When
	// there are as many, or 64 MiB of them, nothing is accepted until one of them is handled. Defaults to 1000.
	Waiting int
	// Retry says how often a message's handler may fail, after which pauses, before the message goes to DeadLetters or, without
	// one, its key counts as stopped. Defaults to 10 attempts, the first pause being 100 ms and the longest 30 s.
	Retry retry.Policy
	// DeadLetters get a message that has used up its attempts. When they have it, it is done. Defaults to none: the message is
	// tried again after the longest pause, and its key alone stands still meanwhile.
	DeadLetters DeadLetters
	// DrainTimeout is how long handlers may go on after the end before their context is cancelled. Defaults to 10 s.
	DrainTimeout time.Duration
	// Counters are told what happens. Defaults to none.
	Counters *Counters
	// Logger is told of failing handlers. Defaults to [slog.Default].
	Logger *slog.Logger
}

// Delivery is a message as a broker has delivered it.
type Delivery struct {
	Message postrider.Message
	// Done is called, from another goroutine, when the message is handled. A message that is not done when the intake ends
	// was not handled.
	Done func()
	// Return, if set, gives a message whose handler has failed back to a broker that delivers it again after the pause, in
	// the place of waiting here. Failures are then those that the broker has counted before this delivery.
	Return   func(cause error, pause time.Duration)
	Failures int
}

// Intake hands messages to a handler. Make one for each Consume with [Open].
type Intake struct {
	cfg    Config
	handle postrider.Handler
	ctx    context.Context // ends when no further message is to be begun
	hard   context.Context // for handlers: outlives ctx by DrainTimeout
	cancel context.CancelFunc
	slots  chan struct{} // of handlers at work
	all    *Part
	run    sync.WaitGroup

	mu      sync.Mutex
	closed  bool          // Wait was called
	waiting int           // messages
	bytes   int           // of their payloads
	fewer   chan struct{} // closed, and replaced, when fewer wait
	toldAt  time.Time     // when the log was last told that too many wait
}

// Open returns an intake that works until ctx ends. [Intake.Wait] must be called in the end.
func Open(ctx context.Context, handle postrider.Handler, cfg Config) *Intake {
	cfg.Limit = cmp.Or(cfg.Limit, 64)
	cfg.Waiting = cmp.Or(cfg.Waiting, 1000)
	cfg.Retry = cfg.Retry.Or(retry.Policy{First: 100 * time.Millisecond, Most: 30 * time.Second, Attempts: 10})
	cfg.DrainTimeout = cmp.Or(cfg.DrainTimeout, 10*time.Second)
	if cfg.Counters == nil {
		cfg.Counters = new(Counters)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	in := &Intake{
		cfg:    cfg,
		handle: handle,
		ctx:    ctx,
		slots:  make(chan struct{}, cfg.Limit),
		fewer:  make(chan struct{}),
	}
	in.hard, in.cancel = context.WithCancel(context.WithoutCancel(ctx))
	in.all = in.Part()
	return in
}

// Accept takes a message over. It waits until there is room and reports false when the intake's context ends first: the
// message is then not the intake's. Messages of one key must be accepted by one goroutine, in their order.
func (in *Intake) Accept(d Delivery) bool { return in.all.Accept(d) }

// Free waits until another handler can be called and returns how many can be. It returns 0 when the intake's context ends first.
// Who takes no more messages from a broker than that leaves the others to the other consumers.
func (in *Intake) Free() int {
	select {
	case in.slots <- struct{}{}:
		<-in.slots
		return max(cap(in.slots)-len(in.slots), 1)
	case <-in.ctx.Done():
		return 0
	}
}

// Wait returns when the context has ended and no handler is at work any more.
func (in *Intake) Wait() {
	<-in.ctx.Done()
	in.mu.Lock()
	in.closed = true
	in.mu.Unlock()
	timer := time.AfterFunc(in.cfg.DrainTimeout, in.cancel)
	defer timer.Stop()
	in.run.Wait()
	in.cancel()
}

// wait changes how many messages wait. The caller holds the lock.
func (in *Intake) wait(messages, bytes int) {
	in.waiting += messages
	in.bytes += bytes
	in.cfg.Counters.waiting.Add(int64(messages))
	if messages < 0 {
		close(in.fewer)
		in.fewer = make(chan struct{})
	}
}

// full says whether as many messages wait as may. Somebody has to be told if that is because handlers fail: the whole
// consumer stands still. The caller holds the lock.
func (in *Intake) full() bool {
	if in.waiting < in.cfg.Waiting && in.bytes < maxWaitingBytes {
		return false
	}
	if s := in.cfg.Counters.Stats(); s.Failing > 0 && time.Since(in.toldAt) > time.Minute {
		in.toldAt = time.Now()
		in.cfg.Logger.Error("consumer: no further message is accepted until one of those that wait is handled; set a dead-letter destination, or let more wait",
			"waiting", in.waiting, "bytes", in.bytes, "most", in.cfg.Waiting, "failing_keys", s.Failing, "stopped_keys", s.Stopped)
	}
	return true
}
