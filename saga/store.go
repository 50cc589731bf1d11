package saga

import (
	"context"
	"time"
)

// Store keeps sagas in the application's database, so that a step and the record of it are one transaction. Tx is the
// transaction type that the application already has. Implementations are safe for concurrent use, and prove themselves
// with sagatest.Run.
//
// There are two locks, both held until the transaction ends: that of a step, which whoever runs it holds from the
// beginning, and that of a saga, which is held while something is written. Whoever holds a saga's lock never waits for that
// of a step; so nobody waits in a circle, and nobody but the transactions that write waits at all.
type Store[Tx any] interface {
	// Do runs f in a transaction and commits it when f returns nil; otherwise it rolls back and returns f's error. Where the
	// database gives the transaction up for the sake of others, f may be run again in a new one. After any other error of a
	// commit nobody knows whether it has happened; callers look again. The context that f is given is that of the
	// transaction: see postrider.AfterCommit.
	Do(ctx context.Context, f func(ctx context.Context, tx Tx) error) error

	// Create writes a new saga, with times by the store's clock where they are relative: Started and Updated are now, and
	// Deadline, Due and Until are moved from the instance's Now to that clock. It returns [ErrExists] if there is one of
	// that name and ID, and the transaction remains usable then. It waits for a transaction that is about to create it.
	Create(ctx context.Context, tx Tx, i *Instance) error

	// Due returns how long it takes until the next of the known steps is due, not above 0 if one is, and false if none
	// will be. It is one cheap statement, outside of any transaction, and does not care about locks.
	Due(ctx context.Context, known Known) (next time.Duration, ok bool, err error)

	// Take locks one of the known steps that are due, those due for longest first, leaving out what is locked. It returns
	// the saga as it is then, without locking that, and the name of the step; nil if there is none.
	Take(ctx context.Context, tx Tx, known Known) (i *Instance, step string, err error)

	// Hold locks a certain step if nobody else has, and reports whether it has.
	Hold(ctx context.Context, tx Tx, name, id, step string) (bool, error)

	// Lock locks a saga, waiting for others, and returns it as it is then, with what this transaction has written. It
	// returns [ErrNotFound] if there is none.
	Lock(ctx context.Context, tx Tx, name, id string) (*Instance, error)

	// Save writes what has changed of a saga that this transaction has locked, if its version is still that of the
	// instance, and increments that; otherwise it returns [ErrConflict]. Steps to be woken that are locked by others are
	// left as they are: their holders will see the saga. Updated is now.
	Save(ctx context.Context, tx Tx, i *Instance, c Change) error

	// Try runs f, which works in the transaction. If it fails, all that was done in the transaction since is taken back, but
	// for locks that were taken before, and the transaction remains usable; where that is not possible, the next use of it
	// fails. It returns f's error.
	Try(ctx context.Context, tx Tx, f func() error) error
}

// Maintainer is implemented by a [Store] that has housekeeping to do. Runners call it now and then; several at once do no
// harm.
type Maintainer interface {
	// Maintain removes sagas that were finished longer ago than keep, some at a time; 0 removes none. It returns up to a
	// few steps that are due and not known, of sagas that are known.
	Maintain(ctx context.Context, keep time.Duration, known Known) (strangers []Stranger, err error)
}

// Known are the steps that a program can run, by the name of the saga.
type Known map[string][]string

// Stranger is a step that a program cannot run.
type Stranger struct{ Name, ID, Step string }

// Change says what is to be written of an [Instance], beside its status, version, cause and times.
type Change struct {
	Data   bool     // the data
	Steps  []string // these steps: none of them is locked by others
	Wake   []string // of these steps only that they are due now
	Signal string   // this signal; empty if none
}

func (c *Change) step(name string) {
	for _, s := range c.Steps {
		if s == name {
			return
		}
	}
	c.Steps = append(c.Steps, name)
}
