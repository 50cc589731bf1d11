package saga

import (
	"context"
	"time"
)

// Store stores sagas in the application's database, so that a step and its record are one
// transaction. Tx is the transaction type of the application. Implementations are safe for
// concurrent use. Test them with sagatest.Run.
//
// There are two kinds of locks, both held until the transaction ends. The lock of a step is taken
// before the step runs. The lock of a saga is taken to write. A transaction that has locked a saga
// never waits for the lock of a step. This prevents deadlocks, and only transactions that write
// ever wait.
type Store[Tx any] interface {
	// Do runs f in a transaction and commits it if f returns nil; otherwise it rolls back and
	// returns f's error. If the database aborts the transaction because of a conflict, Do may run f
	// again in a new one. After any other error of a commit the outcome is unknown, and callers
	// must read it. The context of f is that of the transaction: see postrider.AfterCommit.
	Do(ctx context.Context, f func(ctx context.Context, tx Tx) error) error

	// Create inserts a new saga, with its times converted to the store's clock: Started and Updated
	// are set to now, and Deadline, Due and Until are moved from the clock of the instance's Now.
	// If there is one with that name and ID, Create returns [ErrExists] and the transaction remains
	// usable. Create waits for a concurrent transaction that creates the same saga.
	Create(ctx context.Context, tx Tx, i *Instance) error

	// Due returns the time until the next of the known steps is due, at most 0 if one is due now,
	// and false if none will be. It is one cheap statement, outside of any transaction, and ignores
	// locks.
	Due(ctx context.Context, known Known) (next time.Duration, ok bool, err error)

	// Take locks one of the known steps that are due, in the order of their due times, and skips
	// locked ones. It returns the saga as it is then, without locking it, and the name of the step;
	// nil if there is none.
	Take(ctx context.Context, tx Tx, known Known) (i *Instance, step string, err error)

	// Hold locks a given step if no other transaction has, and reports whether it did.
	Hold(ctx context.Context, tx Tx, name, id, step string) (bool, error)

	// Lock locks a saga, waits for other transactions if necessary, and returns its current state,
	// including the writes of this transaction. It returns [ErrNotFound] if there is none.
	Lock(ctx context.Context, tx Tx, name, id string) (*Instance, error)

	// Save writes the changes of a saga that this transaction has locked, if its version still
	// equals that of the instance, and increments the version; otherwise it returns [ErrConflict].
	// It does not wake steps that other transactions have locked: those transactions read the saga
	// again themselves. It sets Updated to now.
	Save(ctx context.Context, tx Tx, i *Instance, c Change) error

	// Try runs f, which uses the transaction. If f fails, Try rolls back what was done since it was
	// called, except for locks that were taken before, and the transaction remains usable. If that
	// is impossible, the next use of the transaction fails. Try returns f's error.
	Try(ctx context.Context, tx Tx, f func() error) error
}

// Maintainer is implemented by a [Store] that needs housekeeping. Runners call it periodically;
// concurrent calls are safe.
type Maintainer interface {
	// Maintain removes sagas that finished longer ago than keep, a limited number per call; 0
	// removes none. It returns a few due steps that are not in known, of sagas that are.
	Maintain(ctx context.Context, keep time.Duration, known Known) (strangers []Stranger, err error)
}

// Known lists the steps that a program can run, by the name of the saga.
type Known map[string][]string

// Stranger is a due step that a program cannot run.
type Stranger struct{ Name, ID, Step string }

// Change lists what to write of an [Instance], besides its status, version, cause and times.
type Change struct {
	Data   bool     // the data
	Steps  []string // these steps; no other transaction has locked them
	Wake   []string // these steps are due now; nothing else of them is written
	Signal string   // name of this signal; empty if none
}

func (c *Change) step(name string) {
	for _, s := range c.Steps {
		if s == name {
			return
		}
	}
	c.Steps = append(c.Steps, name)
}
