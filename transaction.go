package postrider

import (
	"context"
	"errors"
	"sync"
)

// ErrUncertain means that it is unknown whether a transaction committed. A caller that repeats the work must be able to
// detect that it was already done.
var ErrUncertain = errors.New("postrider: it is unknown whether the transaction has committed")

// Transactor runs functions in transactions of the application's database. Tx is the application's own transaction type.
// Implementations are safe for concurrent use.
type Transactor[Tx any] interface {
	// Do runs f in a transaction. It commits if f returns nil; otherwise it rolls back and returns f's error. After a
	// serialization failure or a deadlock, Do runs f again in a new transaction, a limited number of times: f must act only
	// through tx.
	//
	// If a commit gets no answer, Do finds out whether it took effect, and runs f again only if it did not. If it cannot find
	// out, it returns [ErrUncertain].
	//
	// The context passed to f belongs to the transaction: see [AfterCommit] and [AfterRollback]. A nested Do is a separate
	// transaction.
	Do(ctx context.Context, f func(ctx context.Context, tx Tx) error) error
}

type runKey struct{}

// run is one run of a transaction: what waits for its end.
type run struct {
	mu                 sync.Mutex
	commits, rollbacks []func()
	ended              bool
}

// AfterCommit registers f to be called after the transaction of ctx commits. f is not called if the transaction does not
// commit or if that is unknown. AfterCommit returns false, and ignores f, if ctx does not belong to a running transaction of
// a [Transactor]. Functions are called in the order of registration, before Do returns.
func AfterCommit(ctx context.Context, f func()) bool {
	return after(ctx, func(r *run) { r.commits = append(r.commits, f) })
}

// AfterRollback is like [AfterCommit] for a transaction that does not commit, as far as is known: f is called before the
// function runs again, or before Do returns its error.
func AfterRollback(ctx context.Context, f func()) bool {
	return after(ctx, func(r *run) { r.rollbacks = append(r.rollbacks, f) })
}

func after(ctx context.Context, add func(*run)) bool {
	r, ok := ctx.Value(runKey{}).(*run)
	if !ok {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return false
	}
	add(r)
	return true
}

// ForTransaction returns a context for one run of a transaction, and the function to call at its end. Only the first call of
// end counts, so end(false) can be deferred. It is for implementations of [Transactor].
func ForTransaction(ctx context.Context) (_ context.Context, end func(committed bool)) {
	r := &run{}
	return context.WithValue(ctx, runKey{}, r), r.end
}

func (r *run) end(committed bool) {
	r.mu.Lock()
	hooks := r.rollbacks
	if committed {
		hooks = r.commits
	}
	r.commits, r.rollbacks, r.ended = nil, nil, true
	r.mu.Unlock()
	for _, f := range hooks {
		f()
	}
}
