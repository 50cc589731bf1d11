// Package transactor holds what the transactors of all stores have in common: their configuration.
package transactor

import (
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/postrider/postrider/retry"
)

// Config is how a store's transactor runs functions.
type Config struct {
	// Isolation is sql.LevelReadCommitted, sql.LevelRepeatableRead or sql.LevelSerializable. Defaults to LevelReadCommitted.
	Isolation sql.IsolationLevel
	// Retry is how often a function runs when its transaction fails for a reason that a new one may not meet: a serialization
	// failure, a deadlock, a connection that was lost before COMMIT. Defaults to 5 attempts, with pauses of 10 ms up to 1 s.
	Retry retry.Policy
	// ResolveTimeout is how long the transactor asks the server what became of a COMMIT that was not answered, even if the
	// caller's context has ended. Defaults to 30 s.
	ResolveTimeout time.Duration
	// LeaveUncertain saves the round trips that prepare this question: a COMMIT that is not answered is then always
	// [postrider.ErrUncertain]. Defaults to false.
	LeaveUncertain bool
}

// WithDefaults fills in the defaults and reports everything that is wrong.
func (c Config) WithDefaults() (Config, error) {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf("transactor: "+format, args...)) }
	switch c.Isolation {
	case sql.LevelDefault:
		c.Isolation = sql.LevelReadCommitted
	case sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable:
	default:
		fail("Isolation is %v: want Read Committed, Repeatable Read or Serializable", c.Isolation)
	}
	c.Retry = c.Retry.Or(retry.Policy{Attempts: 5, First: 10 * time.Millisecond, Most: time.Second})
	if err := c.Retry.Validate(); err != nil {
		fail("Retry: %w", err)
	}
	if c.ResolveTimeout == 0 {
		c.ResolveTimeout = 30 * time.Second
	}
	if c.ResolveTimeout < 0 {
		fail("ResolveTimeout is %v: want more than 0", c.ResolveTimeout)
	}
	return c, errors.Join(errs...)
}
