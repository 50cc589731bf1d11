package saga

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/phrase"
	"github.com/postrider/postrider/retry"
)

// defaultRetry survives an outage of ten minutes.
var defaultRetry = retry.Policy{First: time.Second, Most: time.Minute, Attempts: 20}

// Steps is an argument of [New]: one step, or several parallel ones. Its methods return a changed
// copy; a change applies to each of the steps.
type Steps[Tx, Data any] struct{ all []declared[Tx, Data] }

type declared[Tx, Data any] struct {
	name       string
	act        func(ctx context.Context, tx Tx, data *Data, signal []byte) error
	undo       func(ctx context.Context, tx Tx, data *Data) error
	waits      bool
	within     time.Duration
	timeout    time.Duration
	retry      retry.Policy
	undoRetry  retry.Policy
	undoFailed bool
	wrong      []error
}

// Step declares an action and the compensation that undoes it, which may be nil. Each runs in one
// transaction with the record that it was done. They write to the database through tx; their
// changes of data are saved. For effects outside of the database, use [Key].
//
// A failed action is retried, unless its error is postrider.Permanent; see [Steps.Retry]. Failures
// with postrider.Unavailable or postrider.RetryAfter are retried without being counted. A
// compensation is retried until it succeeds or an operator acts. It must succeed if the effect that
// it undoes no longer exists.
func Step[Tx, Data any](name string, action, compensation func(ctx context.Context, tx Tx, data *Data) error) Steps[Tx, Data] {
	d := declared[Tx, Data]{name: name, undo: compensation}
	if action == nil {
		d.wrong = append(d.wrong, fmt.Errorf("step %q has no action", name))
	} else {
		d.act = func(ctx context.Context, tx Tx, data *Data, _ []byte) error { return action(ctx, tx, data) }
	}
	return Steps[Tx, Data]{[]declared[Tx, Data]{d}}
}

// Wait declares a step that waits for a signal of its name, see [Saga.Signal], and then runs an
// action with the signal's payload. A signal that cannot be decoded fails the step permanently.
func Wait[Tx, Data, Payload any](
	name string, action func(ctx context.Context, tx Tx, data *Data, payload Payload) error,
	compensation func(ctx context.Context, tx Tx, data *Data) error,
) Steps[Tx, Data] {
	d := declared[Tx, Data]{name: name, undo: compensation, waits: true}
	if action == nil {
		d.wrong = append(d.wrong, fmt.Errorf("step %q has no action", name))
	} else {
		d.act = func(ctx context.Context, tx Tx, data *Data, signal []byte) error {
			var payload Payload
			if err := json.Unmarshal(signal, &payload); err != nil {
				return postrider.Permanent(fmt.Errorf("saga: signal %s: %w", name, phrase.Undecodable(err)))
			}
			return action(ctx, tx, data, payload)
		}
	}
	return Steps[Tx, Data]{[]declared[Tx, Data]{d}}
}

// Parallel declares steps that may run concurrently, in any order and in different processes. The
// saga continues when all are done. If one fails, the others that have begun finish, and then all
// completed ones are undone.
//
// Each step sees the data as it was when the step began. Their changes are merged by the top-level
// fields of the data's JSON. If two steps change the same field, the later one is rolled back and
// runs again.
func Parallel[Tx, Data any](steps ...Steps[Tx, Data]) Steps[Tx, Data] {
	var all Steps[Tx, Data]
	for _, s := range steps {
		all.all = append(all.all, s.all...)
	}
	if len(all.all) < 2 {
		all.all = append(all.all, declared[Tx, Data]{wrong: []error{errors.New("Parallel has less than two steps")}})
	}
	return all
}

func (s Steps[Tx, Data]) each(f func(d *declared[Tx, Data])) Steps[Tx, Data] {
	s.all = append([]declared[Tx, Data](nil), s.all...)
	for i := range s.all {
		f(&s.all[i])
	}
	return s
}

// Timeout limits each run of the action or the compensation by a deadline on its context. Defaults
// to 30 seconds.
func (s Steps[Tx, Data]) Timeout(d time.Duration) Steps[Tx, Data] {
	return s.each(func(of *declared[Tx, Data]) { of.timeout = d })
}

// Within limits how long the step waits for its signal; after that it fails. Defaults to no limit
// except that of the saga.
func (s Steps[Tx, Data]) Within(d time.Duration) Steps[Tx, Data] {
	return s.each(func(of *declared[Tx, Data]) { of.within = d })
}

// Retry sets the retry policy of the action; when it is used up, the saga is given up. MaxAge
// counts from the first failure. Attempts that fail with postrider.Unavailable do not count; only
// MaxAge and the saga's deadline limit them. Defaults to 20 attempts with a backoff of 1 s, 2 s, 4
// s, up to 1 min (about 14 minutes in all), and no MaxAge.
func (s Steps[Tx, Data]) Retry(p retry.Policy) Steps[Tx, Data] {
	return s.each(func(of *declared[Tx, Data]) { of.retry = p })
}

// RetryUndo sets the retry policy of the compensation; when it is used up, the saga is stuck.
// Defaults to the same as Retry.
func (s Steps[Tx, Data]) RetryUndo(p retry.Policy) Steps[Tx, Data] {
	return s.each(func(of *declared[Tx, Data]) { of.undoRetry = p })
}

// UndoFailed is for actions with effects outside of the database. If such an action returns an
// error, or the process crashes before it returns, the effect may or may not have happened. With
// UndoFailed, the saga records in a transaction of its own that the action is about to run, and
// never resets that. If the saga is given up, the compensation runs if and only if the action may
// have begun. The compensation must succeed even if there is nothing to undo.
func (s Steps[Tx, Data]) UndoFailed() Steps[Tx, Data] {
	return s.each(func(of *declared[Tx, Data]) { of.undoFailed = true })
}

const (
	defaultTimeout = 30 * time.Second
	maxName        = 200
)

func (d *declared[Tx, Data]) check() error {
	errs := d.wrong
	what := fmt.Sprintf("step %q", d.name)
	if d.act != nil {
		if err := checkName("step", d.name); err != nil {
			errs = append(errs, err)
		}
	}
	if d.timeout < 0 {
		errs = append(errs, fmt.Errorf("%s: a timeout of %v is negative", what, d.timeout))
	}
	if d.within < 0 {
		errs = append(errs, fmt.Errorf("%s: waits within %v, which is negative", what, d.within))
	}
	if d.within > 0 && !d.waits {
		errs = append(errs, fmt.Errorf("%s: Within is for steps that wait, and this one does not; for actions there is Timeout", what))
	}
	if d.undoFailed && d.undo == nil {
		errs = append(errs, fmt.Errorf("%s: UndoFailed wants a compensation, but there is none", what))
	}
	if err := d.retry.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("%s: retry: %w", what, err))
	}
	if err := d.undoRetry.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("%s: retry of the compensation: %w", what, err))
	}
	return errors.Join(errs...)
}
