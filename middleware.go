package postrider

import "context"

// Middleware wraps a handler, to do something before and after each message. Package middleware has some; [Observe] counts, times
// and traces.
type Middleware func(next Handler) Handler

// Wrap returns a handler inside of middleware, the first being the outermost.
func Wrap(handle Handler, all ...Middleware) Handler {
	for i := len(all) - 1; i >= 0; i-- {
		handle = all[i](handle)
	}
	return handle
}

// Use returns a consumer that hands every message through middleware, the first being the outermost. An inbox has middleware in
// its configuration: there it also sees what is tried again from the consumer's database.
func Use(from Consumer, all ...Middleware) Consumer { return &wrappedConsumer{from, all} }

type wrappedConsumer struct {
	Consumer
	middleware []Middleware
}

func (c *wrappedConsumer) Consume(ctx context.Context, handle Handler) error {
	return c.Consumer.Consume(ctx, Wrap(handle, c.middleware...))
}
