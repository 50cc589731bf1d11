package idempotency

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/postrider/postrider"
)

// ErrNoClaim means that Complete was called with a context that does not come from
// [Keys.Middleware].
var ErrNoClaim = errors.New("idempotency: the context carries no claim; is the handler behind Keys.Middleware?")

// Keys serves requests with idempotency keys. It is safe for concurrent use.
type Keys[Tx any] struct {
	store  Store[Tx]
	cfg    Config
	purged atomic.Int64 // when old keys were last purged
}

// New returns Keys that are kept in store.
func New[Tx any](store Store[Tx], cfg Config) (*Keys[Tx], error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	k := &Keys[Tx]{store: store, cfg: cfg}
	// A random offset, because many processes may start at the same time.
	k.purged.Store(time.Now().Add(-rand.N(purgeEvery)).UnixNano())
	return k, nil
}

const (
	purgeEvery   = time.Minute
	purgeTimeout = 30 * time.Second
)

// purge removes keys that are older than their retention, at most once a minute and only while
// requests with keys arrive. It runs in the background. Old keys that remain cost space only: they
// count as new.
func (k *Keys[Tx]) purge(ctx context.Context) {
	now, last := time.Now().UnixNano(), k.purged.Load()
	if time.Duration(now-last) < purgeEvery || !k.purged.CompareAndSwap(last, now) {
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), purgeTimeout)
		defer cancel()
		if _, err := k.store.Purge(ctx); err != nil {
			k.cfg.Logger.WarnContext(ctx, "idempotency: old keys were not removed, will retry in a minute", "err", err)
		}
	}()
}

// Complete records the answer in the handler's own transaction, so that effect and answer commit
// together: after the commit, every retry gets this answer, even if the process crashes before it
// responds. ctx must be the request's context or derive from it. After the commit the handler
// writes the answer with [Answer.Send] and returns.
//
// [ErrLost] means that the request took longer than its lease and that another request took over
// the key. Roll tx back after this and any other error. The answer is stored whatever its status.
// Call Complete at most once. If the request has no key, Complete does nothing.
func (k *Keys[Tx]) Complete(ctx context.Context, tx Tx, a Answer) error {
	f, ok := ctx.Value(flightKey{}).(*flight)
	if !ok {
		return ErrNoClaim
	}
	if err := a.validate(k.cfg.MaxAnswer); err != nil {
		return err
	}
	if f.claim == nil {
		return nil
	}
	kept, err := k.seal(f.claim.ID, a.keeping(k.cfg.Headers))
	if err == nil {
		err = k.store.Complete(ctx, tx, *f.claim, kept)
	}
	if err != nil {
		return fmt.Errorf("idempotency: complete: %w", err)
	}
	f.mu.Lock()
	f.completed = true
	f.mu.Unlock()
	return nil
}

type flightKey struct{}

// flight is a request that a handler is serving.
type flight struct {
	claim *Claim // nil without a key

	mu        sync.Mutex
	completed bool // Complete was called; only the store knows whether it was committed
}

// detached returns a context for work that must be done even if the client has disconnected.
func detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
}

// await claims a key and retries while another request holds it, for up to Config.Wait.
func (k *Keys[Tx]) await(ctx context.Context, claim func() (Outcome, error)) (Outcome, error) {
	until := time.Now().Add(k.cfg.Wait)
	for delay := 10 * time.Millisecond; ; delay = min(2*delay, 250*time.Millisecond) {
		outcome, err := claim()
		left := time.Until(until)
		if err != nil || outcome.State != Busy || left <= 0 {
			return outcome, err
		}
		select {
		case <-time.After(min(delay, left)):
		case <-ctx.Done():
			return outcome, nil
		}
	}
}

// replay answers a request whose key another request holds or has completed.
func (k *Keys[Tx]) replay(w http.ResponseWriter, r *http.Request, outcome Outcome) {
	switch outcome.State {
	case Done:
		w.Header().Set(ReplayedHeader, "true")
		outcome.Answer.Send(w)
	case Mismatch:
		k.refuse(w, r, problemMismatch())
	default:
		k.refuse(w, r, problemBusy())
	}
}

// refuse sends an error as the answer: a [*Problem] as it is, any other error without details.
func (k *Keys[Tx]) refuse(w http.ResponseWriter, r *http.Request, err error) {
	var p *Problem
	switch {
	case errors.As(err, &p):
	case errors.Is(err, postrider.ErrUncertain), errors.Is(err, ErrLost), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, context.Canceled), postrider.ClassOf(err) == postrider.ClassUnavailable:
		k.log(r, "request failed", err)
		p = problemUnavailable()
	default:
		k.log(r, "request failed", err)
		p = &Problem{Status: http.StatusInternalServerError}
	}
	if p.Type == "" && k.cfg.Docs != "" {
		shown := *p
		shown.Type = k.cfg.Docs
		p = &shown
	}
	p.Answer().Send(w)
}

func (k *Keys[Tx]) log(r *http.Request, what string, err error) {
	//nolint:sloglint // one of few texts
	k.cfg.Logger.ErrorContext(r.Context(), "idempotency: "+what, "method", r.Method, "path", r.URL.Path, "error", err)
}
