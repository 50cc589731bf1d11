package middleware

import (
	"context"

	"github.com/postrider/postrider"
)

// Wrap returns a handler wrapped in middleware; the first is the outermost.
func Wrap(handle postrider.Handler, all ...postrider.Middleware) postrider.Handler {
	for i := len(all) - 1; i >= 0; i-- {
		handle = all[i](handle)
	}
	return handle
}

// Use returns a consumer that passes every message through middleware; the first is the outermost.
// An inbox takes middleware in its configuration instead, where it also sees retries from the
// consumer's database.
func Use(from postrider.Consumer, all ...postrider.Middleware) postrider.Consumer {
	return &wrappedConsumer{from, all}
}

type wrappedConsumer struct {
	postrider.Consumer
	middleware []postrider.Middleware
}

func (c *wrappedConsumer) Consume(ctx context.Context, handle postrider.Handler) error {
	return c.Consumer.Consume(ctx, Wrap(handle, c.middleware...))
}
