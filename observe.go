package postrider

import (
	"context"
	"errors"
	"maps"
	"slices"
)

// Observer counts, times or traces what happens to messages. Its methods run for every message, on many goroutines: they
// must be fast and must not fail. Each returns the context for the operation and a function that is called once with its
// outcome.
//
// [ObserveOutbox], [ObservePublisher] and [Observe] install an observer.
type Observer interface {
	// Enqueue is called before messages are written in a transaction, which may still roll back. The observer may set
	// headers of msgs, such as "traceparent". If the outcome has an error, no message was written.
	Enqueue(ctx context.Context, msgs []Message) (context.Context, func(repeats []int, err error))

	// Publish is called before messages are passed to the publisher of a feed. The outcome is the result of Publish: nil if
	// all are confirmed, or one error per message. The observer must not modify msgs.
	Publish(ctx context.Context, feed string, msgs []Message) (context.Context, func(errs []error))

	// Handle is called before a received message is passed to the handler of a consumer.
	Handle(ctx context.Context, consumer string, m *Message) (context.Context, func(err error))
}

// Observers combines several observers. The first is called first, and its outcome function last.
func Observers(all ...Observer) Observer {
	if len(all) == 1 { // saves the loop for every message
		return all[0]
	}
	return observers(slices.Clone(all))
}

type observers []Observer

func (all observers) Enqueue(ctx context.Context, msgs []Message) (context.Context, func([]int, error)) {
	ends := make([]func([]int, error), len(all))
	for i, o := range all {
		ctx, ends[i] = o.Enqueue(ctx, msgs) //nolint:fatcontext // each adds to those before
	}
	return ctx, func(repeats []int, err error) {
		for _, end := range slices.Backward(ends) {
			end(repeats, err)
		}
	}
}

func (all observers) Publish(ctx context.Context, feed string, msgs []Message) (context.Context, func([]error)) {
	ends := make([]func([]error), len(all))
	for i, o := range all {
		ctx, ends[i] = o.Publish(ctx, feed, msgs) //nolint:fatcontext // each adds to those before
	}
	return ctx, func(errs []error) {
		for _, end := range slices.Backward(ends) {
			end(errs)
		}
	}
}

func (all observers) Handle(ctx context.Context, consumer string, m *Message) (context.Context, func(error)) {
	ends := make([]func(error), len(all))
	for i, o := range all {
		ctx, ends[i] = o.Handle(ctx, consumer, m) //nolint:fatcontext // each adds to those before
	}
	return ctx, func(err error) {
		for _, end := range slices.Backward(ends) {
			end(err)
		}
	}
}

// ObserveOutbox returns an outbox that reports every message to o, which may set headers.
func ObserveOutbox[Tx any](to Outbox[Tx], o Observer) Outbox[Tx] { return &observedOutbox[Tx]{to, o} }

type observedOutbox[Tx any] struct {
	Outbox[Tx]
	o Observer
}

func (b *observedOutbox[Tx]) Enqueue(ctx context.Context, tx Tx, msgs ...Message) error {
	ctx, msgs, end := b.begin(ctx, msgs)
	err := b.Outbox.Enqueue(ctx, tx, msgs...)
	end(nil, err)
	return err
}

func (b *observedOutbox[Tx]) Offer(ctx context.Context, tx Tx, msgs ...Message) ([]int, error) {
	ctx, msgs, end := b.begin(ctx, msgs)
	repeats, err := b.Outbox.Offer(ctx, tx, msgs...)
	end(repeats, err)
	return repeats, err
}

func (b *observedOutbox[Tx]) begin(ctx context.Context, msgs []Message) (context.Context, []Message, func([]int, error)) {
	msgs = slices.Clone(msgs)
	for i := range msgs {
		msgs[i].Headers = maps.Clone(msgs[i].Headers)
		if msgs[i].Headers == nil {
			msgs[i].Headers = make(map[string]string, 2)
		}
	}
	ctx, end := b.o.Enqueue(ctx, msgs)
	return ctx, msgs, end
}

var errPanicked = errors.New("postrider: the handler panicked")

// Observe returns middleware that reports every message to o under the name of the consumer. An inbox takes an Observer in
// its configuration, because it handles failures itself.
func Observe(consumer string, o Observer) Middleware {
	return func(next Handler) Handler {
		return func(ctx context.Context, m Message) (err error) {
			ctx, end := o.Handle(ctx, consumer, &m)
			err = errPanicked
			defer func() { end(err) }()
			err = next(ctx, m)
			return err
		}
	}
}
