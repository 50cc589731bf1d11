// Package middleware provides common wrappers for message handlers; see [postrider.Middleware].
//
// Consumers and inboxes already recover panics, and an inbox limits the duration of its handlers.
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

// PanicError is a handler's panic as an error.
type PanicError struct {
	Value any
	Stack string
}

func (e *PanicError) Error() string { return fmt.Sprintf("the handler panicked: %v", e.Value) }

// Recover turns a handler's panic into a [*PanicError], so that one message cannot end the process.
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

// Timeout limits the duration of a handler's context. If the handler fails because of it, its error
// says so.
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

// Log logs every message: at level Debug if it was handled, at level Warn if not. It does not log
// the payload.
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
