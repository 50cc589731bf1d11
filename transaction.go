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
	// The context that f is given is that of the transaction: see [AfterCommit].
	Do(ctx context.Context, f func(ctx context.Context, tx Tx) error) error
}

type commitKey struct{}

type commitHooks struct {
	mu    sync.Mutex
	hooks []func()
}

// AfterCommit has f called when the transaction that ctx belongs to has committed, and not at all if it has not. It reports
// false, and leaves f alone, if ctx does not come from a [Transactor].
func AfterCommit(ctx context.Context, f func()) bool {
	c, ok := ctx.Value(commitKey{}).(*commitHooks)
	if !ok {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hooks = append(c.hooks, f)
	return true
}

// ForCommit returns a context for one run of a transaction, and the function to call when it has committed. It is for
// those who implement a [Transactor].
func ForCommit(ctx context.Context) (_ context.Context, committed func()) {
	c := &commitHooks{}
	return context.WithValue(ctx, commitKey{}, c), func() {
		c.mu.Lock()
		hooks := c.hooks
		c.hooks = nil
		c.mu.Unlock()
		for _, f := range hooks {
			f()
		}
	}
}
