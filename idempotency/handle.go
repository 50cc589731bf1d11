package idempotency

import (
	"context"
	"errors"
	"net/http"

	"github.com/postrider/postrider"
)

// Handler does the work of a request in a transaction, and returns what to answer. All that it does, it does through tx: if
// the database gives the transaction up for the sake of others, the handler is called again.
//
// An answer whose status is kept is committed together with the work. An error, or an answer whose status is not kept, rolls
// the work back and leaves the key free. An error that is a [*Problem] is answered as such, any other with 500, or with 503
// if it is not known whether the transaction has committed.
type Handler[Tx any] func(ctx context.Context, tx Tx, r *http.Request) (Answer, error)

// errNotKept rolls back what has an answer that is not kept.
var errNotKept = errors.New("idempotency: the answer is not kept")

// errTaken rolls back a transaction in which the key was not to be had.
var errTaken = errors.New("idempotency: the key is taken")

// Handle returns an HTTP handler that runs h inside of a transaction: the claim on the key, the work and the answer are one
// commit. There is no lease to wait for after a crash, and one round trip more than the transaction would need anyway to
// claim the key, and one to complete it. Requests without a key run in a transaction too.
//
// The context ends with [Config.Lease] and not when the client is gone.
func (k *Keys[Tx]) Handle(transactor postrider.Transactor[Tx], h Handler[Tx]) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		admitted, err := k.admit(w, r)
		if err == nil && !admitted.keyed {
			admitted.body, err = k.read(w, r) // it may be read more than once
		}
		if err != nil {
			k.refuse(w, r, err)
			return
		}
		run := transaction[Tx]{k, transactor, h, r, admitted.body}
		if !admitted.keyed {
			answer, err := run.plain() //nolint:contextcheck // it has the context of the request
			k.respond(w, r, answer, err)
			return
		}
		claim := admitted.claim
		claim.Lease = 0
		var answer Answer
		outcome, err := k.await(r.Context(), func() (outcome Outcome, err error) {
			// A lost claim has found its winner: the next attempt shows that one's answer.
			for range 3 {
				outcome, answer, err = run.keyed(claim)
				if !errors.Is(err, ErrLost) {
					break
				}
			}
			return outcome, err
		})
		if err == nil && outcome.State != Claimed {
			k.replay(w, r, outcome)
			return
		}
		k.respond(w, r, answer, err)
	})
}

func (k *Keys[Tx]) respond(w http.ResponseWriter, r *http.Request, answer Answer, err error) {
	if err != nil && !errors.Is(err, errNotKept) {
		k.refuse(w, r, err)
		return
	}
	answer.Send(w)
}

// transaction is one request that is served in one.
type transaction[Tx any] struct {
	keys       *Keys[Tx]
	transactor postrider.Transactor[Tx]
	handler    Handler[Tx]
	request    *http.Request
	body       []byte
}

func (t transaction[Tx]) do(f func(ctx context.Context, tx Tx) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.request.Context()), t.keys.cfg.Lease)
	defer cancel()
	return t.transactor.Do(ctx, f)
}

// work calls the handler, and makes sure that nothing is committed without an answer.
func (t transaction[Tx]) work(ctx context.Context, tx Tx) (Answer, error) {
	answer, err := t.handler(ctx, tx, again(ctx, t.request, t.body))
	if err != nil {
		return Answer{}, err
	}
	if err := answer.validate(t.keys.cfg.MaxAnswer); err != nil {
		return Answer{}, err
	}
	if !t.keys.cfg.Keep(answer.status()) {
		return answer, errNotKept
	}
	return answer, nil
}

func (t transaction[Tx]) plain() (answer Answer, err error) {
	err = t.do(func(ctx context.Context, tx Tx) (err error) {
		answer, err = t.work(ctx, tx)
		return err
	})
	return answer, err
}

func (t transaction[Tx]) keyed(claim Claim) (outcome Outcome, answer Answer, err error) {
	err = t.do(func(ctx context.Context, tx Tx) (err error) {
		outcome, err = t.keys.store.ClaimIn(ctx, tx, claim)
		if err != nil {
			return postrider.Unavailable(err) // nothing has happened yet
		}
		if outcome, err = t.keys.unseal(claim.ID, outcome, nil); err != nil {
			return err
		}
		if outcome.State != Claimed {
			return errTaken
		}
		answer, err = t.work(ctx, tx)
		if err != nil {
			return err
		}
		kept, err := t.keys.seal(claim.ID, answer.keeping(t.keys.cfg.Headers))
		if err != nil {
			return err
		}
		return t.keys.store.Complete(ctx, tx, claim, kept)
	})
	if errors.Is(err, errTaken) {
		err = nil
	}
	return outcome, answer, err
}
