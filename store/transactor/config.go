// Package transactor holds the configuration that the transactors of all stores share.
package transactor

import (
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/postrider/postrider/retry"
)

// Config configures the transactor of a store.
type Config struct {
	// Isolation is sql.LevelReadCommitted, sql.LevelRepeatableRead or sql.LevelSerializable. Defaults to LevelReadCommitted.
	Isolation sql.IsolationLevel
	// Retry is the retry policy for transactions that fail with an error that a new transaction may
	// not meet: a serialization failure, a deadlock, or a connection lost before COMMIT. Defaults
	// to 5 attempts, with backoff from 10 ms to 1 s.
	Retry retry.Policy
	// ResolveTimeout is how long the transactor tries to find out whether an unanswered COMMIT took
	// effect, even if the caller's context has ended. Defaults to 30 s.
	ResolveTimeout time.Duration
	// LeaveUncertain saves the round trips that make this possible: an unanswered COMMIT then
	// always returns [postrider.ErrUncertain]. Defaults to false.
	LeaveUncertain bool
}

// WithDefaults returns c with defaults for all fields that are not set, or all errors of the
// configuration.
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
