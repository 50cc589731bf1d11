// Package middleware has what most handlers of messages need around them: see [postrider.Middleware].
//
// Consumers and inboxes recover panics by themselves, and an inbox limits the time of its handlers.
package middleware

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/postrider/postrider"
)

// PanicError is a handler's panic, as an error.
type PanicError struct {
	Value any
	Stack string
}

func (e *PanicError) Error() string { return fmt.Sprintf("the handler panicked: %v", e.Value) }

// Recover makes a [*PanicError] of a handler's panic, so that one message cannot end the process.
func Recover() postrider.Middleware {
	return func(next postrider.Handler) postrider.Handler {
		return func(ctx context.Context, m postrider.Message) (err error) {
			defer func() {
				if p := recover(); p != nil {
					err = &PanicError{Value: p, Stack: string(debug.Stack())}
				}
			}()
			return next(ctx, m)
		}
	}
}

// Timeout ends a handler's context after some time. The error of a handler that has run into it says so.
func Timeout(limit time.Duration) postrider.Middleware {
	cause := fmt.Errorf("the handler took longer than %s", limit)
	return func(next postrider.Handler) postrider.Handler {
		return func(ctx context.Context, m postrider.Message) error {
			ctx, cancel := context.WithTimeoutCause(ctx, limit, cause)
			defer cancel()
			err := next(ctx, m)
			if err != nil && ctx.Err() != nil && !errors.Is(err, context.Cause(ctx)) {
				err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
			}
			return err
		}
	}
}

// Log tells the logger of every message: at level Debug of one that was handled, at level Warn of one that was not. It tells no
// payload.
func Log(to *slog.Logger) postrider.Middleware {
	return func(next postrider.Handler) postrider.Handler {
		return func(ctx context.Context, m postrider.Message) error {
			begin := time.Now()
			err := next(ctx, m)
			if err != nil {
				to.WarnContext(ctx, "message not handled", "", m, "took", time.Since(begin), "err", err)
			} else {
				to.DebugContext(ctx, "message handled", "", m, "took", time.Since(begin))
			}
			return err
		}
	}
}
