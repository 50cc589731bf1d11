// Package lease lets one of several processes work while the others stand by. A broker keeps the
// lease; see [Store].
//
//	standing by ──── free, or silent for a lease ───► taking ──── granted ───► holding ──── stopped ───► releasing
//	     ▲                                               │                        │
//	     └────────────────── another was faster ─────────┴──── lost, or run out ──┘
//
// A process that was paused detects by its own monotonic clock that its lease has expired, without
// asking the broker. Check [Term.Valid] before anything that must not happen in two processes.
package lease

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Store keeps one lease for one process. One goroutine at a time calls it; calls end with their
// context.
type Store interface {
	// Look returns the state of the lease. A lease that this process owns is reported as free.
	Look(ctx context.Context) (Sight, error)
	// Take takes the lease, unless another process has taken or renewed it since the last Look. It
	// then returns false.
	Take(ctx context.Context) (bool, error)
	// Renew restarts the lease. It returns false if another process owns it. After an error the
	// lease may or may not have been renewed, and Run calls Renew again.
	Renew(ctx context.Context) (bool, error)
	// Release releases the lease, if this process owns it.
	Release(ctx context.Context) error
}

// Config tunes [Run].
type Config struct {
	// Length is how long a lease lasts without renewal. Required, at least one second.
	Length time.Duration
	// Name identifies the lease in the log.
	Name string
	// Logger receives when the lease is taken and lost. Required.
	Logger *slog.Logger
}

// Fractions of the lease length. A renewal without an answer times out early enough for two more.
const (
	renewals = 5 // interval between renewals
	timeouts = 4 // timeout of a call
	looks    = 20
)

// Limits of the interval between looks of a standby process: short enough to take over soon after a
// release.
const (
	lookMax = 500 * time.Millisecond
	lookMin = 50 * time.Millisecond
)

// Term is the time from taking the lease to losing or releasing it. It is safe for concurrent use.
type Term struct {
	lost context.Context
	end  context.CancelFunc

	mu    sync.Mutex
	grant grant
	timer *time.Timer // ends the term if nothing else does before
}

// Valid reports whether work may start now. Once it has returned false, it never returns true
// again. It reads the local clock only.
func (t *Term) Valid() bool { return t.Left() > 0 }

// Left returns how long the term is valid without another renewal.
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

// Lose ends the term. Call it when the broker reports that another process owns the lease.
func (t *Term) Lose() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.grant.over = true
	t.end()
}

// newTerm returns the term of a lease that was requested at sent and granted just now, or nil if it
// is over already.
func newTerm(length time.Duration, sent time.Time) *Term {
	t := &Term{grant: grant{length: length}}
	if !t.grant.extend(sent, time.Now()) {
		return nil
	}
	t.lost, t.end = context.WithCancel(context.Background())
	t.timer = time.AfterFunc(t.Left(), func() { t.Valid() })
	return t
}

// extend records a renewal that was requested at sent and granted just now.
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

// Run stands by for the lease and calls serve while this process owns it, until ctx ends. The
// context of serve ends when the term is lost, or with ctx. Serve must return only when no work is
// running. Until then Run keeps renewing the lease. After ctx has ended, Run releases the lease
// once serve has returned, so that the next process can begin at once.
func Run(ctx context.Context, s Store, cfg Config, serve func(ctx context.Context, t *Term)) {
	r := &runner{store: s, cfg: cfg}
	for ctx.Err() == nil {
		if t := r.standBy(ctx); t != nil {
			r.hold(ctx, t, serve)
		}
	}
	if r.mine {
		ask, cancel := r.bound(context.WithoutCancel(ctx))
		defer cancel()
		if err := s.Release(ask); err != nil {
			cfg.Logger.Warn("consumer: lease not released, other processes must wait until it expires", "lease", cfg.Name, "err", err)
		}
	}
}

type runner struct {
	store Store
	cfg   Config
	mine  bool // the broker may consider this process the owner
	down  bool // the log has reported that the broker does not answer
}

// bound limits the duration of a call of the store.
func (r *runner) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, r.cfg.Length/timeouts)
}

// answered logs the beginning and the end of an outage, and reports whether err is nil.
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

// standBy waits until this process owns the lease. It returns nil at the end of ctx.
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
	ask, cancel := r.bound(ctx)
	defer cancel()
	s, err := r.store.Look(ask)
	if err != nil {
		return false, err
	}
	return w.looked(s, time.Now()), nil
}

// take returns nil if this process does not own the lease, or does not know.
func (r *runner) take(ctx context.Context) *Term {
	ask, cancel := r.bound(context.WithoutCancel(ctx)) // not cancelled with ctx: it must be known whether the lease was taken
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

// hold renews the lease until serve has returned, even after ctx has ended: other processes must
// wait until no work is running here.
func (r *runner) hold(ctx context.Context, t *Term, serve func(context.Context, *Term)) {
	r.cfg.Logger.Info("consumer: lease taken, receiving", "lease", r.cfg.Name)
	work, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(t.lost, stop)() //nolint:contextcheck // a term outlives the context
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

// rest returns what is left of the interval between two calls, but at least a moment if the first
// call took longer. A ticker would have fired by then, and receiving that tick crashes the race
// detector in a synctest bubble (Go 1.26).
func rest(asked time.Time, every time.Duration) <-chan time.Time {
	return time.After(max(every-time.Since(asked), time.Millisecond))
}

func (r *runner) renew(ctx context.Context, t *Term) {
	ask, cancel := r.bound(context.WithoutCancel(ctx))
	defer cancel()
	sent := time.Now()
	ok, err := r.store.Renew(ask)
	if !r.answered(ctx, err) {
		return // the next renewal may still be in time
	}
	if ok {
		t.extend(sent)
		return
	}
	r.mine = false
	t.Lose()
}
