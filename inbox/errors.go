package inbox

import (
	"errors"
	"fmt"

	"github.com/postrider/postrider"
)

var (
	// ErrLate means that a message is too old, or too far in the future, to know whether it was
	// received before.
	ErrLate = errors.New("inbox: the message is outside of the window in which repetitions are recognised")

	// ErrNoHandler means that no handler is registered for the type of a message.
	ErrNoHandler = errors.New("inbox: no handler for this type of message")
)

// FailedError means that a handler failed, or that the database refused to commit its transaction.
type FailedError struct{ Err error }

func (e *FailedError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *FailedError) Unwrap() error { return e.Err }

func permanent(format string, args ...any) error {
	return postrider.Permanent(fmt.Errorf(format, args...))
}
