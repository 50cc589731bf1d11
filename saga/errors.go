package saga

import (
	"errors"
	"fmt"
)

var (
	// ErrExists means that a saga of that name and ID was started before.
	ErrExists = errors.New("saga: was started before")
	// ErrNotFound means that there is no saga of that name and ID.
	ErrNotFound = errors.New("saga: not found")
	// ErrConflict means that a saga has changed between reading and writing. What was to be written
	// was not.
	ErrConflict = errors.New("saga: changed meanwhile")
	// ErrDeadline is the cause of a compensation when a saga, or a signal, has not come in time.
	ErrDeadline = errors.New("saga: out of time")
	// ErrStep matches every [*StepError].
	ErrStep = errors.New("saga: step failed")
)

// StepError reports which step of [Run] failed, and which compensations failed.
type StepError struct {
	Step  string
	Err   error // of its action
	Stuck error // errors of failed compensations, joined; nil if all steps were undone
}

func (e *StepError) Error() string {
	text := fmt.Sprintf("saga: step %s: %v", e.Step, e.Err)
	if e.Stuck != nil {
		text += fmt.Sprintf("; not undone: %v", e.Stuck)
	}
	return text
}

// Is makes errors.Is(err, ErrStep) true.
func (e *StepError) Is(target error) bool { return target == ErrStep }

// Unwrap returns the errors of the action and the compensations.
func (e *StepError) Unwrap() []error {
	if e.Stuck == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.Stuck}
}
