package saga

import (
	"context"
	"fmt"
	"net/url"
	"runtime/debug"
)

type keyOf struct{}

// Key returns the idempotency key of a step for its effects outside of the database. It is the same
// for every run of the same step of the same instance, and unique otherwise. A compensation has its
// own key. The key is empty if ctx does not come from a step.
func Key(ctx context.Context) string {
	key, _ := ctx.Value(keyOf{}).(string)
	return key
}

func withKey(ctx context.Context, name, id, step string, undo bool) context.Context {
	key := url.PathEscape(name) + "/" + url.PathEscape(id) + "/" + url.PathEscape(step)
	if undo {
		key += "/undo"
	}
	return context.WithValue(ctx, keyOf{}, key)
}

// safely turns a panic into an error. Otherwise a step that panics would crash the program at every
// attempt.
func safely(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("saga: panic: %v\n%s", p, debug.Stack())
		}
	}()
	return f()
}
