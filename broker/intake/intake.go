// Package intake is the part that all consumers share. It hands received messages to a handler, in
// order per key and with limited concurrency, retries failures, and tells the broker's side which
// messages are done.
//
// A message holds a slot only while its handler runs. A message that waits, for its next attempt or
// for another message of its key, holds none, so that a failing or slow key does not block the
// others. The number of waiting messages is limited too.
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

// maxWaitingBytes limits the payload bytes of waiting messages; one message may exceed it.
const maxWaitingBytes = 64 << 20

// Config tunes an [Intake]. The zero value works.
type Config struct {
	// Limit is the maximum number of messages handled concurrently. Defaults to 64.
	Limit int
	// Waiting is the maximum number of messages that wait, for their next attempt or for another
	// message of their key. At this limit, or at 64 MiB of payload, nothing more is accepted until
	// one of them is handled. Defaults to 1000.
	Waiting int
	// Retry is the policy for failed handler calls. When it is used up, the message goes to
	// DeadLetters or, without them, its key counts as stopped. Defaults to 10 attempts with a
	// backoff from 100 ms to 30 s.
	Retry retry.Policy
	// DeadLetters receives messages that have used up their attempts. A message is done once it is
	// there. Defaults to none: the message is retried with the longest backoff, and only its key
	// waits.
	DeadLetters DeadLetters
	// DrainTimeout is how long handlers may continue after shutdown before their context is
	// cancelled. Defaults to 10 s.
	DrainTimeout time.Duration
	// Counters receives totals. Defaults to none.
	Counters *Counters
	// Logger receives handler failures. Defaults to [slog.Default].
	Logger *slog.Logger
}

// Delivery is a message as a broker has delivered it.
type Delivery struct {
	Message postrider.Message
	// Done is called, from another goroutine, when the message has been handled. If it has not been
	// called when the intake ends, the message was not handled.
	Done func()
	// Return, if set, gives a message whose handler has failed back to the broker, which redelivers
	// it after the backoff, so that it does not wait here. Failures is then the number of failures
	// that the broker counted before this delivery.
	Return   func(cause error, pause time.Duration)
	Failures int
}

// Intake hands messages to a handler. Create one with [Open] for each call of Consume.
type Intake struct {
	cfg    Config
	handle postrider.Handler
	ctx    context.Context // once done, no further message is started
	hard   context.Context // for handlers: outlives ctx by DrainTimeout
	cancel context.CancelFunc
	slots  chan struct{} // one per running handler
	all    *Part
	run    sync.WaitGroup

	mu      sync.Mutex
	closed  bool          // Wait was called
	waiting int           // messages
	bytes   int           // of their payloads
	fewer   chan struct{} // closed and replaced when fewer messages wait
	toldAt  time.Time     // when the log last reported that too many wait
}

// Open returns an intake that works until ctx ends. Call [Intake.Wait] at the end.
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

// Accept takes responsibility for a message. It waits until there is room, and returns false if the
// intake's context ends first; the caller then keeps the message. Messages of one key must be
// accepted by one goroutine, in order.
func (in *Intake) Accept(d Delivery) bool { return in.all.Accept(d) }

// Free waits until at least one slot is free and returns the number of free slots, or 0 if the
// intake's context ends first. A consumer that fetches no more messages than that leaves the rest
// to other consumers.
func (in *Intake) Free() int {
	select {
	case in.slots <- struct{}{}:
		<-in.slots
		return max(cap(in.slots)-len(in.slots), 1)
	case <-in.ctx.Done():
		return 0
	}
}

// Wait waits for the context to end and for all running handlers to return.
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

// wait adjusts the number of waiting messages. The caller holds the lock.
func (in *Intake) wait(messages, bytes int) {
	in.waiting += messages
	in.bytes += bytes
	in.cfg.Counters.waiting.Add(int64(messages))
	if messages < 0 {
		close(in.fewer)
		in.fewer = make(chan struct{})
	}
}

// full reports whether the limit of waiting messages is reached. It logs if failing handlers are
// the cause, because the whole consumer then makes no progress. The caller holds the lock.
func (in *Intake) full() bool {
	if in.waiting < in.cfg.Waiting && in.bytes < maxWaitingBytes {
		return false
	}
	if s := in.cfg.Counters.Stats(); s.Failing > 0 && time.Since(in.toldAt) > time.Minute {
		in.toldAt = time.Now()
		in.cfg.Logger.Error("consumer: too many messages wait, no more are accepted; set a dead-letter destination or raise max_waiting",
			"waiting", in.waiting, "bytes", in.bytes, "most", in.cfg.Waiting, "failing_keys", s.Failing, "stopped_keys", s.Stopped)
	}
	return true
}
