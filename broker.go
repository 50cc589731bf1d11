package postrider

import "context"

// Publisher sends messages to a destination. Implementations are safe for concurrent use.
type Publisher interface {
	// Publish sends msgs in their order and returns when the fate of each is known. It returns nil when the
	// destination has durably confirmed all of them; otherwise one entry per message, nil where confirmed. Errors are
	// marked with [Permanent] or [Unavailable] where the publisher knows; one refused message must not harm its
	// neighbours. When ctx ends, Publish returns soon, and what was not confirmed by then carries an error.
	//
	// Publish does not keep msgs, and does not change them.
	Publish(ctx context.Context, msgs []Message) []error

	// Close gives up the publisher's resources. No Publish is under way or follows.
	Close() error
}

// OrderKeeper is implemented by a [Publisher] whose pipeline keeps order when a message in the middle fails: nothing
// behind the failed message, of the same key and the same call, is accepted. With any other publisher the relay keeps
// at most one message of a key in flight.
type OrderKeeper interface {
	KeepsOrder() bool
}

// PublisherFunc makes a function that handles one message at a time a [Publisher], for relays that deliver inside
// their own process. It returns nil when the message has been dealt with.
type PublisherFunc func(ctx context.Context, m Message) error

// Publish calls the function for each message in turn and, after a failure or the end of ctx, for none that follows.
func (f PublisherFunc) Publish(ctx context.Context, msgs []Message) []error {
	for i, m := range msgs {
		err := ctx.Err()
		if err == nil {
			err = f(ctx, m)
		}
		if err != nil {
			errs := make([]error, len(msgs))
			errs[i] = err
			for j := i + 1; j < len(msgs); j++ {
				errs[j] = Unavailable(errNotTried)
			}
			return errs
		}
	}
	return nil
}

// KeepsOrder is true: messages behind a failed one are not tried.
func (f PublisherFunc) KeepsOrder() bool { return true }

// Close does nothing.
func (f PublisherFunc) Close() error { return nil }
