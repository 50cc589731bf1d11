package saga

import (
	"context"
	"errors"
	"fmt"
)

// Task is a step of [Run].
type Task struct {
	name     string
	do, undo func(ctx context.Context) error
}

// Do returns a step with an action and the compensation that undoes it, which may be nil.
func Do(name string, action, compensation func(ctx context.Context) error) Task {
	return Task{name, action, compensation}
}

// Run runs the steps in order, in this process. If one fails, it runs the compensations of the
// steps before it in reverse order, each up to three times and even if ctx has ended, and returns a
// [*StepError]. A crash of the process loses the progress; use a [Saga] where that must not happen.
func Run(ctx context.Context, steps ...Task) error {
	for n, t := range steps {
		err := ctx.Err()
		if err == nil {
			err = safely(func() error { return t.do(ctx) })
		}
		if err != nil {
			return &StepError{t.name, err, undo(context.WithoutCancel(ctx), steps[:n])}
		}
	}
	return nil
}

const undoAttempts = 3

func undo(ctx context.Context, done []Task) error {
	var errs []error
	for n := len(done) - 1; n >= 0; n-- {
		t := done[n]
		if t.undo == nil {
			continue
		}
		var err error
		for range undoAttempts {
			if err = safely(func() error { return t.undo(ctx) }); err == nil {
				break
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", t.name, err))
		}
	}
	return errors.Join(errs...)
}
