package postrider

import "context"

// Publisher sends messages to a destination. Implementations are safe for concurrent use.
type Publisher interface {
	// Publish sends msgs in their order and returns when the fate of each is known. It returns nil when the
	// destination has durably confirmed all of them; otherwise one entry per message, nil where confirmed. Errors are
	// marked with [Permanent], [NameUnavailable] or [Unavailable] where the publisher knows; one refused message must not
	// harm its neighbours. When ctx ends, Publish returns soon, and what was not confirmed by then carries an error.
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

// Namer is implemented by a [Publisher] that sends messages to several queues, topics, subjects or endpoints, so that an
// outage of one of them holds up its own messages alone. With any other publisher all messages share one name.
type Namer interface {
	// NameOf returns the name that Publish sends m to. Messages of one name fare alike unless one of them is to blame.
	NameOf(m *Message) string
}

// Inspector is implemented by a [Publisher] that can find out what the confirmations of its destination are worth.
type Inspector interface {
	// Inspect asks the destination how it is set up for the given names, as in [Message.Topic]. It sends no message and
	// changes nothing. A name that does not exist is a [Warning]; an error means that the destination did not answer.
	Inspect(ctx context.Context, names []string) (Inspection, error)
}

// Inspection is what a destination's confirmation means.
type Inspection struct {
	// Confirmed says in one sentence what has happened to a message that counts as confirmed.
	Confirmed string
	// Settings are those of the destination that this depends on, such as "min.insync.replicas (orders)".
	Settings []Setting
	// Warnings are settings under which a confirmed message can be lost.
	Warnings []Warning
}

// Setting is one setting of a destination, in the destination's own words.
type Setting struct{ Name, Value string }

// Warning is a danger and the sentence that says how to remove it.
type Warning struct{ Danger, Remedy string }

// Handler does the work that a received message asks for. Nil means that it is done and the message may be forgotten.
type Handler func(ctx context.Context, m Message) error

// Consumer receives messages from a destination.
type Consumer interface {
	// Consume hands messages to handle and acknowledges each at the destination once handle has returned nil. Messages
	// of one key are handled one after the other, in the order in which the destination delivers them; when handle fails, or
	// panics, it is called again with the same message, after a pause, and the later ones of its key wait, while other keys
	// go on. After a number of attempts a consumer may move the message to a dead-letter destination. What was not acknowledged
	// when Consume ends or the process dies is delivered again: handle must expect repetitions.
	//
	// Consume returns nil soon after ctx has ended, when the calls of handle under way have returned. Outages never end
	// it; it returns an error only when the subscription itself can never work. It may be called again.
	Consume(ctx context.Context, handle Handler) error

	// Close gives up the consumer's resources. No Consume is under way or follows.
	Close() error
}

// PublisherFunc makes a function that handles one message at a time a [Publisher], for relays that deliver inside
// their own process. It returns nil when the message has been dealt with.
type PublisherFunc func(ctx context.Context, m Message) error

// Publish calls the function for each message in turn and, after a failure or the end of ctx, for none that follows.
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

// KeepsOrder is true: messages behind a failed one are not tried.
func (f PublisherFunc) KeepsOrder() bool { return true }

// Close does nothing.
func (f PublisherFunc) Close() error { return nil }
