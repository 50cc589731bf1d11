// Package lease lets one of several processes work while the others stand by. The lease is kept by a broker; see [Store].
//
//	standing by ──── free, or silent for a lease ───► taking ──── granted ───► holding ──── stopped ───► releasing
//	     ▲                                               │                        │
//	     └────────────────── another was faster ─────────┴──── lost, or run out ──┘
//
// A process that was paused finds out by its own monotonic clock that its lease is over, before it asks anybody: [Term.Valid] is
// checked before whatever must not happen in two processes.
package lease

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Store keeps one lease for one process. It is called by one goroutine at a time; calls end with their context.
type Store interface {
	// Look says who has the lease. One that is ours already is free.
	Look(ctx context.Context) (Sight, error)
	// Take makes the lease ours, unless somebody has taken or renewed it since the last Look. It reports false then.
	Take(ctx context.Context) (bool, error)
	// Renew lets the lease begin anew. It reports false if it is not ours any more. After an error it may or may not have been
	// renewed, and is asked again.
	Renew(ctx context.Context) (bool, error)
	// Release gives the lease up, if it is ours.
	Release(ctx context.Context) error
}

// Config tunes [Run].
type Config struct {
	// Length is how long a lease lasts that is not renewed. Required, at least a second.
	Length time.Duration
	// Name is what the log calls the lease.
	Name string
	// Logger is told when the lease is taken and lost. Required.
	Logger *slog.Logger
}

// How often, in parts of the length of a lease. A renewal that gets no answer is given up early enough for two more.
const (
	renewals = 5 // are sent
	timeouts = 4 // is how long the broker may take to answer
	looks    = 20
)

// Looks of those who stand by are no further apart, so that they take over soon after a release, and no closer.
const (
	lookMax = 500 * time.Millisecond
	lookMin = 50 * time.Millisecond
)

// Term is the time between taking the lease and losing or releasing it. It is safe for concurrent use.
type Term struct {
	lost context.Context
	end  context.CancelFunc

	mu    sync.Mutex
	grant grant
	timer *time.Timer // ends the term, unless somebody finds out before
}

// Valid says whether something may be begun now. Once it has said no, it never says yes again. It asks nobody but the clock.
func (t *Term) Valid() bool { return t.Left() > 0 }

// Left is for how long the term is valid without another renewal.
func (t *Term) Left() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	left := t.grant.left(time.Now())
	if left == 0 {
		t.end()
	}
	return left
}

// Lost returns a context that ends with the term.
func (t *Term) Lost() context.Context { return t.lost }

// Lose ends the term. It is for who hears from the broker that another process has the lease.
func (t *Term) Lose() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.grant.over = true
	t.end()
}

// newTerm returns the term of a lease that was asked for at sent and granted just now, or nil if it is over already.
func newTerm(length time.Duration, sent time.Time) *Term {
	t := &Term{grant: grant{length: length}}
	if !t.grant.extend(sent, time.Now()) {
		return nil
	}
	t.lost, t.end = context.WithCancel(context.Background())
	t.timer = time.AfterFunc(t.Left(), func() { t.Valid() })
	return t
}

// extend takes note of a renewal that was sent then and granted just now.
func (t *Term) extend(sent time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if !t.grant.extend(sent, now) {
		t.end()
		return
	}
	t.timer.Reset(t.grant.left(now))
}

// Run stands by for the lease and calls serve while this process has it, until ctx ends. The context of serve ends when the term is
// lost, or with ctx. Serve returns when nothing is at work any more: until then the lease is renewed, as long as it is ours, and when ctx
// has ended it is released after that, so that the next process begins at once.
func Run(ctx context.Context, s Store, cfg Config, serve func(ctx context.Context, t *Term)) {
	r := &runner{store: s, cfg: cfg}
	for ctx.Err() == nil {
		if t := r.standBy(ctx); t != nil {
			r.hold(ctx, t, serve)
		}
	}
	if r.mine {
		ask, cancel := r.patience(context.WithoutCancel(ctx))
		defer cancel()
		if err := s.Release(ask); err != nil {
			cfg.Logger.Warn("consumer: lease not released, others wait until it is over", "lease", cfg.Name, "err", err)
		}
	}
}

type runner struct {
	store Store
	cfg   Config
	mine  bool // the broker may take the lease for ours
	down  bool // the log knows that the broker does not answer
}

// patience bounds a call of the store.
func (r *runner) patience(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, r.cfg.Length/timeouts)
}

// answered tells the log of the beginning and the end of an outage, and reports whether there is none.
func (r *runner) answered(ctx context.Context, err error) bool {
	if err != nil && ctx.Err() == nil && !r.down {
		r.cfg.Logger.Warn("consumer: the broker does not answer for the lease, trying again", "lease", r.cfg.Name, "err", err)
		r.down = true
	} else if err == nil && r.down {
		r.cfg.Logger.Info("consumer: the broker answers for the lease again", "lease", r.cfg.Name)
		r.down = false
	}
	return err == nil
}

// standBy returns when the lease is ours, or nil at the end of ctx.
func (r *runner) standBy(ctx context.Context) *Term {
	w := watch{length: r.cfg.Length}
	every := min(max(r.cfg.Length/looks, lookMin), lookMax)
	for said := false; ctx.Err() == nil; {
		asked := time.Now()
		may, err := r.look(ctx, &w)
		if r.answered(ctx, err) && may {
			if t := r.take(ctx); t != nil {
				return t
			}
		}
		if err == nil && !may && !said {
			r.cfg.Logger.Info("consumer: another process has the lease, standing by", "lease", r.cfg.Name)
			said = true
		}
		select {
		case <-rest(asked, every):
		case <-ctx.Done():
		}
	}
	return nil
}

func (r *runner) look(ctx context.Context, w *watch) (may bool, err error) {
	ask, cancel := r.patience(ctx)
	defer cancel()
	s, err := r.store.Look(ask)
	if err != nil {
		return false, err
	}
	return w.looked(s, time.Now()), nil
}

// take returns nil if the lease is not ours, or not known to be.
func (r *runner) take(ctx context.Context) *Term {
	ask, cancel := r.patience(context.WithoutCancel(ctx)) // whether it is ours must be known in the end
	defer cancel()
	r.mine = true
	sent := time.Now()
	ok, err := r.store.Take(ask)
	if !r.answered(ctx, err) {
		return nil
	}
	if r.mine = ok; !ok {
		return nil
	}
	return newTerm(r.cfg.Length, sent)
}

// hold renews the lease until serve has returned. At the end of ctx it goes on: others wait until nothing is at work here.
func (r *runner) hold(ctx context.Context, t *Term, serve func(context.Context, *Term)) {
	r.cfg.Logger.Info("consumer: lease taken, receiving", "lease", r.cfg.Name)
	work, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(t.lost, stop)()
	served := make(chan struct{})
	go func() {
		defer close(served)
		serve(work, t)
	}()
	for asked := time.Now(); ; {
		select {
		case <-served:
			t.timer.Stop()
			t.Lose()
			return
		case <-t.lost.Done():
			r.cfg.Logger.Warn("consumer: lease lost, another process may receive now", "lease", r.cfg.Name)
			<-served
			return
		case <-rest(asked, r.cfg.Length/renewals):
			asked = time.Now()
			r.renew(ctx, t)
		}
	}
}

// rest is what is left of the time between two questions, and a moment when the answer to the first took longer.
// A ticker would have fired by then, and receiving that tick crashes the race detector in a synctest bubble (Go 1.26).
func rest(asked time.Time, every time.Duration) <-chan time.Time {
	return time.After(max(every-time.Since(asked), time.Millisecond))
}

func (r *runner) renew(ctx context.Context, t *Term) {
	ask, cancel := r.patience(context.WithoutCancel(ctx))
	defer cancel()
	sent := time.Now()
	ok, err := r.store.Renew(ask)
	if !r.answered(ctx, err) {
		return // the next renewal may be in time
	}
	if ok {
		t.extend(sent)
		return
	}
	r.mine = false
	t.Lose()
}
