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

// ErrNoClaim means that Complete was called with a context that does not come from [Keys.Middleware].
var ErrNoClaim = errors.New("idempotency: the context carries no claim; is the handler behind Keys.Middleware?")

// Keys serves requests with idempotency keys. It is safe for concurrent use.
type Keys[Tx any] struct {
	store  Store[Tx]
	cfg    Config
	purged atomic.Int64 // when old keys were last removed
}

// New returns keys that are kept in store.
func New[Tx any](store Store[Tx], cfg Config) (*Keys[Tx], error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	k := &Keys[Tx]{store: store, cfg: cfg}
	// Not at once: many processes may start together, and again and again.
	k.purged.Store(time.Now().Add(-rand.N(purgeEvery)).UnixNano())
	return k, nil
}

const (
	purgeEvery   = time.Minute
	purgeTimeout = 30 * time.Second
)

// purge removes what is older than its retention, once a minute while requests with keys come. No request waits for it. Keys
// that are not removed cost space and nothing else: they count as new.
func (k *Keys[Tx]) purge(ctx context.Context) {
	now, last := time.Now().UnixNano(), k.purged.Load()
	if time.Duration(now-last) < purgeEvery || !k.purged.CompareAndSwap(last, now) {
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), purgeTimeout)
		defer cancel()
		if _, err := k.store.Purge(ctx); err != nil {
			k.cfg.Logger.WarnContext(ctx, "idempotency: old keys were not removed, trying again in a minute", "err", err)
		}
	}()
}

// Complete records the answer in the handler's own transaction, so that the effect and the answer to it are one: once tx has
// committed, every retry gets this answer, also if the process dies before the client has heard of it. The context is the
// request's, or comes from it. After the commit the handler writes the answer with [Answer.Send], and returns.
//
// If it returns [ErrLost], the request has taken longer than its lease and another one has taken over: tx must be rolled
// back. So it must after every other error. Any status is stored. It is called once. Without a key in the request it does nothing.
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

// flight is a request on its way through a handler.
type flight struct {
	claim *Claim // nil without a key

	mu        sync.Mutex
	completed bool // Complete was called; whether it was committed, the store knows
}

// detached returns a context for what must be done whether or not the client is still there.
func detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
}

// await claims a key, again and again while another request has it, until Config.Wait is over.
func (k *Keys[Tx]) await(ctx context.Context, claim func() (Outcome, error)) (Outcome, error) {
	until := time.Now().Add(k.cfg.Wait)
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, 250*time.Millisecond) {
		outcome, err := claim()
		left := time.Until(until)
		if err != nil || outcome.State != Busy || left <= 0 {
			return outcome, err
		}
		select {
		case <-time.After(min(pause, left)):
		case <-ctx.Done():
			return outcome, nil
		}
	}
}

// replay answers a request whose key somebody else has, or had.
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

// refuse answers with an error: in the words of a [*Problem], without details of any other.
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
