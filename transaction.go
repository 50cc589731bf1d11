package postrider

import (
	"context"
	"errors"
	"sync"
)

// ErrUncertain means that it could not be found out whether a transaction has committed. Nothing may be concluded from it:
// whoever repeats the work must be able to tell that it was done.
var ErrUncertain = errors.New("postrider: it is unknown whether the transaction has committed")

// Transactor runs functions in transactions of the application's database. Tx is the transaction type that the application
// already has. Implementations are safe for concurrent use.
type Transactor[Tx any] interface {
	// Do runs f in a transaction and commits it when f returns nil. Otherwise it rolls back and returns f's error. Where the
	// database gives the transaction up for the sake of others, by a serialization failure or a deadlock, f is run again, in a
	// new one, a limited number of times: all that f does, it does through tx.
	//
	// When a commit is not answered, Do finds out what has become of it, and never repeats f unless it knows that nothing has
	// happened. If it cannot find out, it returns [ErrUncertain].
	//
	// The context that f is given is that of the transaction: see [AfterCommit] and [AfterRollback]. A Do inside of f is a
	// transaction of its own.
	Do(ctx context.Context, f func(ctx context.Context, tx Tx) error) error
}

type runKey struct{}

// run is one run of a transaction: what waits for its end.
type run struct {
	mu                 sync.Mutex
	commits, rollbacks []func()
	ended              bool
}

// AfterCommit has f called when the transaction that ctx belongs to has committed, and not at all if it has not, or if that
// cannot be known. It reports false, and leaves f alone, if ctx does not come from a [Transactor], or from a run of it that is
// over. Functions are called in the order in which they were handed over, before Do returns.
func AfterCommit(ctx context.Context, f func()) bool {
	return after(ctx, func(r *run) { r.commits = append(r.commits, f) })
}

// AfterRollback is [AfterCommit] for transactions that have not committed, as far as is known: f is called before the function
// is run again, or before Do returns its error.
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

// ForTransaction returns a context for one run of a transaction, and the function to call when that has ended. Only the first
// call of end counts, so that end(false) can be deferred. It is for those who implement a [Transactor].
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
