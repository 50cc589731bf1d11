// Package intake is the part that all consumers share: it hands received messages to a handler, in order per key, with
// a bound on how many are in flight, and tells the broker's side which of them are done.
package intake

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/postrider/postrider"
)

// Config tunes an [Intake]. The zero value works.
type Config struct {
	// Limit is the largest number of messages that are accepted and not yet done. Defaults to 64.
	Limit int
	// RetryMin is the pause after a handler's first failure; it doubles with each further one. Defaults to 100 ms.
	RetryMin time.Duration
	// RetryMax is the longest pause. Defaults to 30 s.
	RetryMax time.Duration
	// DrainTimeout is how long handlers may go on after the end before their context is cancelled. Defaults to 10 s.
	DrainTimeout time.Duration
	// Logger is told of failing handlers. Defaults to [slog.Default].
	Logger *slog.Logger
}

// Intake hands messages to a handler. Make one for each Consume with [Open].
type Intake struct {
	cfg    Config
	handle postrider.Handler
	ctx    context.Context // ends when no further message is to be begun
	hard   context.Context // for the handler: outlives ctx by DrainTimeout
	cancel context.CancelFunc
	slots  chan struct{}

	mu   sync.Mutex
	keys map[string][]delivery // messages that wait behind one of their key; a key that is present is being worked on
	run  sync.WaitGroup
}

type delivery struct {
	m    postrider.Message
	done func()
}

// Open returns an intake that works until ctx ends. [Intake.Wait] must be called in the end.
func Open(ctx context.Context, handle postrider.Handler, cfg Config) *Intake {
	cfg.Limit = cmp.Or(cfg.Limit, 64)
	cfg.RetryMin = cmp.Or(cfg.RetryMin, 100*time.Millisecond)
	cfg.RetryMax = cmp.Or(cfg.RetryMax, 30*time.Second)
	cfg.DrainTimeout = cmp.Or(cfg.DrainTimeout, 10*time.Second)
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	in := &Intake{
		cfg:    cfg,
		handle: handle,
		ctx:    ctx,
		slots:  make(chan struct{}, cfg.Limit),
		keys:   make(map[string][]delivery),
	}
	in.hard, in.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return in
}

// Accept takes a message over. It waits for a free place and reports false when the intake's context ends first: the
// message is then not the intake's. Messages of one key must be accepted by one goroutine, in their order. When the
// handler has returned nil, done is called, from another goroutine; a message that is not done when the intake ends was
// not handled.
func (in *Intake) Accept(m postrider.Message, done func()) bool {
	select {
	case in.slots <- struct{}{}:
	case <-in.ctx.Done():
		return false
	}
	d := delivery{m, done}
	key := m.OrderKey()
	if key == "" {
		in.run.Go(func() { in.deliver(d) })
		return true
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	waiting, busy := in.keys[key]
	if busy {
		in.keys[key] = append(waiting, d)
		return true
	}
	in.keys[key] = nil
	in.run.Go(func() { in.work(key, d) })
	return true
}

// work delivers a message and those of its key that have come meanwhile.
func (in *Intake) work(key string, d delivery) {
	for {
		in.deliver(d)
		in.mu.Lock()
		waiting := in.keys[key]
		if len(waiting) == 0 {
			delete(in.keys, key)
			in.mu.Unlock()
			return
		}
		d, in.keys[key] = waiting[0], waiting[1:]
		in.mu.Unlock()
	}
}

// deliver calls the handler until it succeeds or the intake ends.
func (in *Intake) deliver(d delivery) {
	defer func() { <-in.slots }()
	pause := in.cfg.RetryMin
	for in.ctx.Err() == nil {
		err := in.handle(in.hard, d.m)
		if err == nil {
			d.done()
			return
		}
		if in.ctx.Err() != nil {
			return
		}
		in.cfg.Logger.Warn("consumer: handler failed, trying again", "id", d.m.BrokerID(), "type", d.m.Type,
			"key", d.m.OrderKey(), "pause", pause, "err", err)
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-in.ctx.Done():
			timer.Stop()
		}
		pause = min(2*pause, in.cfg.RetryMax)
	}
}

// Wait returns when the context has ended and no handler is at work any more.
func (in *Intake) Wait() {
	<-in.ctx.Done()
	timer := time.AfterFunc(in.cfg.DrainTimeout, in.cancel)
	defer timer.Stop()
	in.run.Wait()
	in.cancel()
}
