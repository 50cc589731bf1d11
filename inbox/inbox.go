package inbox

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/postrider/postrider"
)

// Handler does what a message asks for, through tx: what it does there is committed together with the record of the message.
// After an error the message is tried again, as [Config.Retry] says. One marked [postrider.Permanent] makes it a dead letter at once. One
// marked [postrider.Unavailable] or [postrider.RetryAfter] is an outage of what the handler calls, and counts against no message.
type Handler[Tx any] func(ctx context.Context, tx Tx, m postrider.Message) error

// BatchHandler does what several messages of different keys ask for, in one transaction.
type BatchHandler[Tx any] func(ctx context.Context, tx Tx, msgs []postrider.Message) error

// Inbox is a named consumer. Handlers are registered before it is used; then it is safe for concurrent use.
type Inbox[Tx any] struct {
	name     string
	store    Store[Tx]
	cfg      Config
	handlers map[string]Handler[Tx]
	batch    *batcher[Tx]
	stats    counters
	wake     chan struct{} // something was set aside
	help     chan struct{} // there may be more to try again than one can do

	misuse  error     // what is wrong with the handlers
	unnamed sync.Once // says that there are messages without an ID

	mu     sync.Mutex
	opened bool
}

// New returns an inbox. The name is what the consumer is known by, in every process and for ever: what it has received is
// recorded under that name.
func New[Tx any](store Store[Tx], name string, cfg Config) (*Inbox[Tx], error) {
	cfg, err := cfg.withDefaults()
	if name == "" || len(name) > 200 {
		err = errors.Join(err, fmt.Errorf("inbox: name %q: want a name of at most 200 bytes", name))
	}
	if store == nil {
		err = errors.Join(err, errors.New("inbox: store is nil"))
	}
	return &Inbox[Tx]{
		name:     name,
		store:    store,
		cfg:      cfg,
		handlers: make(map[string]Handler[Tx]),
		wake:     make(chan struct{}, 1),
		help:     make(chan struct{}, max(cfg.Retriers, 1)),
	}, err
}

// Name returns the consumer's name.
func (in *Inbox[Tx]) Name() string { return in.name }

// Feed returns the name under which operators find what a consumer has set aside.
func Feed(consumer string) string { return feedPrefix + consumer }

// ConsumerOf returns the name of the consumer that a [Feed] belongs to; empty if it is a feed of relays.
func ConsumerOf(feed string) string {
	name, ok := strings.CutPrefix(feed, feedPrefix)
	if !ok {
		return ""
	}
	return name
}

const feedPrefix = "inbox/"

// anyType is the type under which the handler of all other types is registered.
const anyType = "*"

// Handle registers the handler for a type of message. The type "*" stands for all that have no handler of their own. A type
// has one handler: a second registration is an error, which Run and Receive return.
func (in *Inbox[Tx]) Handle(messageType string, handle Handler[Tx]) {
	switch {
	case messageType == "" || handle == nil:
		in.misuse = errors.Join(in.misuse, fmt.Errorf("inbox: consumer %q: handler for type %q: the type is empty or the handler is nil", in.name, messageType))
	case in.handlers[messageType] != nil:
		in.misuse = errors.Join(in.misuse, fmt.Errorf("inbox: consumer %q: type %q has two handlers", in.name, messageType))
	default:
		in.handlers[messageType] = handle
	}
}

// HandleBatch registers a handler for all messages whose type has no handler of its own, as Handle("*", …) does. It is called
// with those that have come while the transaction before was under way, up to [Config.Batch] of them. If it fails, it is called
// again with each of them alone.
func (in *Inbox[Tx]) HandleBatch(handle BatchHandler[Tx]) {
	if handle == nil {
		in.Handle(anyType, nil)
		return
	}
	in.Handle(anyType, func(ctx context.Context, tx Tx, m postrider.Message) error {
		return handle(ctx, tx, []postrider.Message{m})
	})
	in.batch = &batcher[Tx]{inbox: in, handle: handle}
}

// usable reports what is wrong with the handlers.
func (in *Inbox[Tx]) usable() error {
	if len(in.handlers) == 0 && in.misuse == nil {
		return fmt.Errorf("inbox: consumer %q has no handlers: register them before Run or Receive", in.name)
	}
	return in.misuse
}

// open makes sure that the store knows the consumer, and remembers for long enough.
func (in *Inbox[Tx]) open(ctx context.Context) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.opened {
		return nil
	}
	window, err := in.store.Open(ctx, in.name)
	if err != nil {
		return err
	}
	if window < in.cfg.Redelivery {
		return &WindowError{Consumer: in.name, Window: window, Redelivery: in.cfg.Redelivery}
	}
	in.opened = true
	return nil
}

// Receive is a [postrider.Handler] for any consumer. It returns nil when the message is taken care of: handled, or handled before,
// or set aside. An error, always [postrider.Unavailable], means that the consumer's database could not be reached: the message
// is to be tried again, and is not to blame.
func (in *Inbox[Tx]) Receive(ctx context.Context, m postrider.Message) error {
	return postrider.Unavailable(in.accept(ctx, m))
}

func (in *Inbox[Tx]) accept(ctx context.Context, m postrider.Message) error {
	if err := in.usable(); err != nil {
		return err
	}
	if err := in.open(ctx); err != nil {
		return err
	}
	if m.Type == postrider.CanaryType {
		return nil
	}
	in.identify(&m)
	if in.batch != nil && in.handlers[m.Type] == nil {
		return in.batch.receive(ctx, m)
	}
	return in.receive(ctx, m)
}

// receive handles one message in a transaction of its own.
func (in *Inbox[Tx]) receive(ctx context.Context, m postrider.Message) error {
	verdicts, err := in.store.Handle(ctx, in.name, []postrider.Message{m}, in.cfg.AcceptLate,
		func(ctx context.Context, tx Tx, _ []int) error { return in.dispatch(ctx, tx, m) })
	var failed *FailedError
	if errors.As(err, &failed) {
		return in.setAside(ctx, m, failed.Err)
	}
	if err != nil {
		return err
	}
	in.count(verdicts[0], &m)
	return nil
}

// dispatch calls the handler of a message.
func (in *Inbox[Tx]) dispatch(ctx context.Context, tx Tx, m postrider.Message) error {
	handle := in.handlers[m.Type]
	if handle == nil {
		handle = in.handlers[anyType]
	}
	if handle == nil {
		if in.cfg.IgnoreUnknown {
			return nil
		}
		return postrider.Permanent(fmt.Errorf("%w: %q", ErrNoHandler, m.Type))
	}
	ctx, told := in.observe(ctx, m)
	err := in.guard(ctx, m, func(ctx context.Context) error { return handle(ctx, tx, m) })
	told(err)
	return err
}

// guard bounds a handler's time and makes an error of its panic.
func (in *Inbox[Tx]) guard(ctx context.Context, m postrider.Message, handle func(context.Context) error) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, in.cfg.Timeout, fmt.Errorf("inbox: the handler took longer than %s", in.cfg.Timeout))
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{p}
			in.cfg.Logger.Error("inbox: handler panicked", "consumer", in.name, "", m,
				"panic", p, "stack", string(debug.Stack()))
		}
	}()
	err = handle(context.WithValue(ctx, messageKey{}, m))
	if err != nil && ctx.Err() != nil && !errors.Is(err, context.Cause(ctx)) {
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return err
}

type messageKey struct{}

// Message returns the message that is being handled, for handlers that are given only its payload. Its second result is false
// outside of a handler.
func Message(ctx context.Context) (postrider.Message, bool) {
	m, ok := ctx.Value(messageKey{}).(postrider.Message)
	return m, ok
}
