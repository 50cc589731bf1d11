package inbox

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/postrider/postrider"
)

// batcher collects the messages that arrive while a transaction is open, and handles them in the
// next one. A goroutine that finds no leader becomes the leader: it handles a batch for itself and
// for the others that wait.
type batcher[Tx any] struct {
	inbox  *Inbox[Tx]
	route  *route[Tx]
	handle BatchHandler[Tx]

	mu      sync.Mutex
	leading bool
	waiting []*delivery
}

type delivery struct {
	ctx  context.Context
	m    postrider.Message
	done chan struct{} // closed when the outcome is known, or when this delivery becomes the leader
	lead bool
	err  error
}

func (b *batcher[Tx]) receive(ctx context.Context, m postrider.Message) error {
	d := &delivery{ctx: ctx, m: m, done: make(chan struct{})}
	b.mu.Lock()
	b.waiting = append(b.waiting, d)
	if b.leading {
		b.mu.Unlock()
		<-d.done
		if !d.lead {
			return d.err
		}
		b.mu.Lock()
	}
	b.leading = true
	batch := b.waiting[:min(len(b.waiting), b.inbox.cfg.Batch)]
	b.waiting = b.waiting[len(batch):]
	b.mu.Unlock()

	b.run(batch) //nolint:contextcheck // each delivery has its own

	b.mu.Lock()
	b.leading = len(b.waiting) > 0
	if b.leading {
		b.waiting[0].lead = true
		close(b.waiting[0].done)
	}
	b.mu.Unlock()
	for _, other := range batch {
		if other != d {
			close(other.done)
		}
	}
	return d.err
}

// run handles a batch. If the batch fails, it handles each message alone. It leaves out deliveries
// whose context has ended: the broker redelivers them.
func (b *batcher[Tx]) run(batch []*delivery) {
	in := b.inbox
	batch = slices.DeleteFunc(slices.Clone(batch), func(d *delivery) bool {
		d.err = d.ctx.Err()
		return d.err != nil
	})
	if len(batch) == 0 {
		return
	}
	msgs := make([]postrider.Message, len(batch))
	for i, d := range batch {
		msgs[i] = d.m
	}
	ctx, cancel := joinContexts(batch)
	defer cancel()
	verdicts, err := in.store.Handle(ctx, in.name, msgs, in.cfg.AcceptLate, func(ctx context.Context, tx Tx, fresh []int) error {
		chosen := make([]postrider.Message, len(fresh))
		for i, n := range fresh {
			chosen[i] = msgs[n]
		}
		ctx, done := in.observe(ctx, chosen...)
		err := in.guard(b.route, func(ctx context.Context, _ postrider.Message) error {
			return b.handle(context.WithValue(ctx, messagesKey{}, chosen), tx, chosen)
		})(ctx, chosen[0])
		done(err)
		return err
	})
	var failed *FailedError
	if errors.As(err, &failed) {
		for _, d := range batch {
			d.err = in.receive(d.ctx, d.m)
		}
		return
	}
	for i, d := range batch {
		if d.err = err; err == nil {
			in.count(verdicts[i], &d.m)
		}
	}
}

// single handles one message as a batch of one.
func (handle BatchHandler[Tx]) single(ctx context.Context, tx Tx, m postrider.Message) error {
	msgs := []postrider.Message{m}
	return handle(context.WithValue(ctx, messagesKey{}, msgs), tx, msgs)
}

type messagesKey struct{}

// Messages returns the messages of the batch that is being handled, for handlers that receive only
// decoded payloads. Outside of a batch handler it returns nil.
func Messages(ctx context.Context) []postrider.Message {
	msgs, _ := ctx.Value(messagesKey{}).([]postrider.Message)
	return msgs
}

// joinContexts returns a context that ends when the contexts of all deliveries have ended. The
// leader's own context may end before those of the others.
func joinContexts(batch []*delivery) (context.Context, context.CancelFunc) {
	first := batch[0].ctx
	if !slices.ContainsFunc(batch, func(d *delivery) bool { return d.ctx != first }) {
		return context.WithCancel(first)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(first))
	var waiting atomic.Int64
	waiting.Store(int64(len(batch)))
	stops := make([]func() bool, len(batch))
	for i, d := range batch {
		stops[i] = context.AfterFunc(d.ctx, func() {
			if waiting.Add(-1) == 0 {
				cancel()
			}
		})
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel()
	}
}
