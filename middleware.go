package postrider

import "context"

// Middleware wraps a handler. Package broker/middleware has common ones; [Observe] counts, times and traces.
type Middleware func(next Handler) Handler

// Wrap returns a handler wrapped in middleware; the first is the outermost.
func Wrap(handle Handler, all ...Middleware) Handler {
	for i := len(all) - 1; i >= 0; i-- {
		handle = all[i](handle)
	}
	return handle
}

// Use returns a consumer that passes every message through middleware; the first is the outermost. An inbox takes middleware
// in its configuration, where it also sees retries from the consumer's database.
func Use(from Consumer, all ...Middleware) Consumer { return &wrappedConsumer{from, all} }

type wrappedConsumer struct {
	Consumer
	middleware []Middleware
}

func (c *wrappedConsumer) Consume(ctx context.Context, handle Handler) error {
	return c.Consumer.Consume(ctx, Wrap(handle, c.middleware...))
}
