package idempotency

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"time"

	"github.com/postrider/postrider"
)

// Middleware serves requests with a key once. It passes the first one to next and stores the
// response before it sends it; every retry gets that response. The whole response is held in
// memory, so a handler cannot flush or hijack.
//
// The context of the handler ends at [Config.Lease] and not when the client disconnects: the
// handler finishes, and the client's retry gets the answer. If the handler panics, or answers with
// a status that is not kept, the key is released. Next should call [Keys.Complete] in its
// transaction. Otherwise, after a crash between its effect and the end of the request, a retry
// repeats the effect once the lease has expired.
func (k *Keys[Tx]) Middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		admitted, err := k.admit(w, r)
		if err != nil {
			k.refuse(w, r, err)
			return
		}
		if !admitted.keyed {
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), flightKey{}, &flight{})))
			return
		}
		k.lead(w, r, admitted, next)
	})
}

func (k *Keys[Tx]) lead(w http.ResponseWriter, r *http.Request, admitted admission, next http.Handler) {
	claim := admitted.claim
	var deadline time.Time                                         // taken before the lease begins
	outcome, err := k.await(r.Context(), func() (Outcome, error) { //nolint:contextcheck // it has the context of the request
		deadline = time.Now().Add(k.cfg.Lease)
		return k.claim(r.Context(), claim)
	})
	if err != nil {
		if r.Context().Err() != nil {
			k.release(r, claim) // the claim may have succeeded
		}
		k.refuse(w, r, fmt.Errorf("claim: %w", err))
		return
	}
	if outcome.State != Claimed {
		k.replay(w, r, outcome)
		return
	}

	f := &flight{claim: &claim}
	ctx, cancel := context.WithDeadline(context.WithValue(context.WithoutCancel(r.Context()), flightKey{}, f), deadline)
	defer cancel()
	returned := false
	defer func() {
		if !returned { // next panicked, or called runtime.Goexit
			k.release(r, claim)
		}
	}()
	response := newRecorder(w.Header(), k.cfg.MaxAnswer)
	next.ServeHTTP(response, again(ctx, r, admitted.body))
	returned = true
	k.conclude(w, r, f, response)
}

// conclude stores a handler's response as the answer of its key, and sends it.
func (k *Keys[Tx]) conclude(w http.ResponseWriter, r *http.Request, f *flight, response *recorder) {
	f.mu.Lock()
	completed := f.completed
	f.mu.Unlock()
	if completed && k.concluded(w, r, f, response) {
		return
	}
	if completed && response.status == 0 {
		k.release(r, *f.claim)
		k.log(r, "request failed", errors.New("the transaction with Complete has not committed, and the handler has not answered"))
		k.refuse(w, r, &Problem{Status: http.StatusInternalServerError})
		return
	}
	answer := response.answer()
	var kept Answer
	switch {
	case response.tooLarge:
		answer = problemTooLarge().Answer() // kept, because the handler has done its work
		kept = answer.keeping(k.cfg.Headers)
	case !k.cfg.Keep(answer.Status):
		k.release(r, *f.claim)
		send(w, answer)
		return
	default:
		kept = answer.keeping(k.cfg.Headers)
	}
	kept, err := k.seal(f.claim.ID, kept)
	if err == nil {
		err = k.save(r, *f.claim, kept)
	}
	switch {
	case errors.Is(err, ErrLost):
		k.log(r, "the request took longer than its lease, and another one has its key", err)
		k.refuse(w, r, problemBusy())
		return
	case err != nil:
		k.log(r, "save", err) // send the answer all the same: it tells the client not to retry
	}
	send(w, answer)
}

// concluded sends the answer that the handler passed to Complete, if its transaction has committed.
func (k *Keys[Tx]) concluded(w http.ResponseWriter, r *http.Request, f *flight, response *recorder) bool {
	ctx, cancel := detached(r.Context())
	defer cancel()
	outcome, err := k.claim(ctx, *f.claim)
	switch {
	case err != nil:
		k.refuse(w, r, fmt.Errorf("claim: %w", err))
	case outcome.State == Claimed:
		return false
	case outcome.State == Done:
		answer := response.answer()
		for _, name := range k.cfg.Headers {
			answer.Header.Del(name)
		}
		maps.Copy(answer.Header, outcome.Answer.Header)
		send(w, Answer{Status: outcome.Answer.Status, Header: answer.Header, Body: outcome.Answer.Body})
	default:
		k.replay(w, r, outcome)
	}
	return true
}

func (k *Keys[Tx]) claim(ctx context.Context, c Claim) (Outcome, error) {
	outcome, err := k.store.Claim(ctx, c)
	return k.unseal(c.ID, outcome, postrider.Unavailable(err))
}

// save retries until its context ends: if the answer is not stored, a retry of the request repeats
// the work.
func (k *Keys[Tx]) save(r *http.Request, claim Claim, a Answer) error {
	ctx, cancel := detached(r.Context())
	defer cancel()
	for delay := 20 * time.Millisecond; ; delay = min(2*delay, time.Second) {
		err := k.store.Save(ctx, claim, a)
		if err == nil || errors.Is(err, ErrLost) {
			return err
		}
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return err
		}
	}
}

func (k *Keys[Tx]) release(r *http.Request, claim Claim) {
	ctx, cancel := detached(r.Context())
	defer cancel()
	if err := k.store.Release(ctx, claim); err != nil {
		k.log(r, "release", err) // the lease will expire
	}
}
