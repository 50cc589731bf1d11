package postrider

import "context"

// Publisher sends messages to a destination. Implementations are safe for concurrent use.
type Publisher interface {
	// Publish sends msgs in order and returns when the outcome of each is known. It returns nil if the destination
	// durably confirmed all of them; otherwise one entry per message, nil where confirmed. Publish marks errors with
	// [Permanent], [NameUnavailable] or [Unavailable] where it knows the class. One refused message must not affect the
	// others. When ctx ends, Publish returns soon, with an error for each message that was not confirmed by then.
	//
	// Publish neither retains nor modifies msgs.
	Publish(ctx context.Context, msgs []Message) []error

	// Close releases the publisher's resources. Publish must not be called concurrently with or after Close.
	Close() error
}

// Handler handles a received message. The consumer acknowledges the message if Handler returns nil.
type Handler func(ctx context.Context, m Message) error

// Consumer receives messages from a destination.
type Consumer interface {
	// Consume calls handle for each message and acknowledges the message after handle returns nil. It handles the
	// messages of one key one at a time, in the order in which the destination delivers them. If handle fails or panics,
	// Consume calls it again with the same message after a backoff; later messages of the key wait, other keys continue.
	// After a number of attempts a consumer may move the message to a dead-letter destination. The destination redelivers
	// messages that were not acknowledged when Consume ended or the process died: handle must tolerate duplicates.
	//
	// Consume returns nil soon after ctx ends, when all running calls of handle have returned. It survives outages and
	// returns an error only if the subscription can never work. It may be called again.
	Consume(ctx context.Context, handle Handler) error

	// Close releases the consumer's resources. Consume must not be called concurrently with or after Close.
	Close() error
}

// PublisherFunc adapts a function that handles one message at a time to a [Publisher], for relays that deliver inside
// their own process. The function returns nil if it handled the message.
type PublisherFunc func(ctx context.Context, m Message) error

// Publish calls the function for each message in order. It stops after the first failure or when ctx ends.
func (f PublisherFunc) Publish(ctx context.Context, msgs []Message) []error {
	for i, m := range msgs {
		err := Unavailable(ctx.Err())
		if err == nil {
			err = f(ctx, m)
		}
		if err != nil {
			errs := make([]error, len(msgs))
			errs[i] = err
			for j := i + 1; j < len(msgs); j++ {
				errs[j] = Unavailable(ErrNotTried)
			}
			return errs
		}
	}
	return nil
}

// KeepsOrder returns true: Publish does not try messages behind a failed one.
func (f PublisherFunc) KeepsOrder() bool { return true }

// Close does nothing.
func (f PublisherFunc) Close() error { return nil }
