// Package retrying is how transactors of all stores try again: how often, after which pauses, and for how long they ask what has
// become of a COMMIT.
package retrying

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Plan holds what a store's configuration says. Its zero fields have defaults.
type Plan struct {
	Isolation              sql.IsolationLevel // Defaults to LevelReadCommitted.
	MaxAttempts            int                // Defaults to 5.
	BackoffMin, BackoffMax time.Duration      // Default to 10 ms and 1 s.
	Patience               time.Duration      // Defaults to 30 s.
}

// WithDefaults fills the plan in, and reports all that cannot be done. Errors begin with the name of the store.
func (p Plan) WithDefaults(store string) (Plan, error) {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(store+": "+format, args...)) }
	switch p.Isolation {
	case sql.LevelDefault:
		p.Isolation = sql.LevelReadCommitted
	case sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable:
	default:
		fail("Isolation is %v: want Read Committed, Repeatable Read or Serializable", p.Isolation)
	}
	if p.MaxAttempts == 0 {
		p.MaxAttempts = 5
	}
	if p.Patience == 0 {
		p.Patience = 30 * time.Second
	}
	if p.BackoffMax == 0 {
		p.BackoffMax = max(time.Second, p.BackoffMin)
	}
	if p.BackoffMin == 0 {
		p.BackoffMin = min(10*time.Millisecond, max(p.BackoffMax, 0))
	}
	if p.MaxAttempts < 0 {
		fail("MaxAttempts is %d: want at least 1", p.MaxAttempts)
	}
	if p.Patience < 0 || p.BackoffMin < 0 || p.BackoffMax < 0 {
		fail("Patience is %v, BackoffMin %v, BackoffMax %v: want more than 0", p.Patience, p.BackoffMin, p.BackoffMax)
	} else if p.BackoffMin > p.BackoffMax {
		fail("BackoffMin of %v and BackoffMax of %v contradict each other", p.BackoffMin, p.BackoffMax)
	}
	return p, errors.Join(errs...)
}

// Pause sleeps after the nth failure and reports whether ctx is still alive then.
func Pause(ctx context.Context, shortest, longest time.Duration, n int) bool {
	d := longest
	if n <= 30 && shortest<<(n-1) < longest {
		d = shortest << (n - 1)
	}
	timer := time.NewTimer(d + rand.N(d/2+1))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
