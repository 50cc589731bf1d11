package idempotency

import (
	"context"
	"errors"
	"net/http"

	"github.com/postrider/postrider"
)

// Handler handles a request in a transaction and returns the answer. It must write through tx only:
// if the database aborts the transaction because of a conflict, the handler is called again.
//
// An answer whose status is kept commits together with the work. An error, or an answer whose
// status is not kept, rolls the work back and releases the key. An error that is a [*Problem] is
// sent as such. Any other error is answered with 500, or with 503 if it is unknown whether the
// transaction committed.
type Handler[Tx any] func(ctx context.Context, tx Tx, r *http.Request) (Answer, error)

// errNotKept rolls back the work of an answer that is not kept.
var errNotKept = errors.New("idempotency: the answer is not kept")

// errTaken rolls back a transaction that did not get the key.
var errTaken = errors.New("idempotency: the key is taken")

// Handle returns an HTTP handler that runs h in a transaction: the claim on the key, the work and
// the answer are one commit. After a crash no lease blocks the key. Besides the transaction itself,
// it costs one round trip to claim the key and one to complete it. Requests without a key run in a
// transaction too.
//
// The context ends at [Config.Lease] and not when the client disconnects.
func (k *Keys[Tx]) Handle(transactor postrider.Transactor[Tx], h Handler[Tx]) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		admitted, err := k.admit(w, r)
		if err == nil && !admitted.keyed {
			admitted.body, err = k.read(w, r) // the handler may be called more than once
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
			// After a lost claim, the next attempt finds the answer of the request that won.
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

// transaction is a request that is served in a transaction.
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

// work calls the handler and returns an error, which rolls back, unless its answer is valid and
// kept.
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
			return postrider.Unavailable(err) // nothing was written yet
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
