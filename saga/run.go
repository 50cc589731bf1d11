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

// Do makes a step of an action and the compensation that undoes it, which may be nil.
func Do(name string, action, compensation func(ctx context.Context) error) Task {
	return Task{name, action, compensation}
}

// Run runs the steps one after the other, in this process. If one fails, the compensations of those before it run in reverse
// order, also if ctx has ended, each up to three times, and Run returns a [*StepError]. What is under way is lost with the
// process; where that must not be, see [Saga].
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
