package inbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/middleware"
	"github.com/postrider/postrider/internal/slot"
	"github.com/postrider/postrider/store/feeds"
)

// Handler handles a message through tx. Its writes commit together with the record of the message.
// If it returns an error, the inbox retries the message by [Config.Retry]. An error marked
// [postrider.Permanent] makes the message a dead letter at once. An error marked
// [postrider.Unavailable] or [postrider.RetryAfter] is an outage of something that the handler
// calls: the attempt does not count.
type Handler[Tx any] func(ctx context.Context, tx Tx, m postrider.Message) error

// BatchHandler handles several messages with different keys in one transaction.
type BatchHandler[Tx any] func(ctx context.Context, tx Tx, msgs []postrider.Message) error

// Inbox is a named consumer. Register its handlers before using it; from then on it is safe for
// concurrent use.
type Inbox[Tx any] struct {
	name    string
	store   Store[Tx]
	cfg     Config
	routes  map[string]*route[Tx] // by type
	unknown *route[Tx]            // for types that have no handler
	stats   counters
	wake    chan struct{} // signals that a message was deferred
	help    chan struct{} // signals idle retriers that more messages may be due

	misuse  error     // registration errors
	unnamed sync.Once // guards the warning about messages without an ID

	mu     sync.Mutex
	opened bool
}

// New returns an inbox. The name identifies the consumer in every process and must not change: the
// store records received messages under it.
func New[Tx any](store Store[Tx], name string, cfg Config) (*Inbox[Tx], error) {
	cfg, err := cfg.withDefaults()
	if name == "" || len(name) > 200 {
		err = errors.Join(err, fmt.Errorf("inbox: name %q: want a name of at most 200 bytes", name))
	}
	if store == nil {
		err = errors.Join(err, errors.New("inbox: store is nil"))
	}
	if err != nil {
		return nil, err
	}
	return &Inbox[Tx]{
		name:    name,
		store:   store,
		cfg:     cfg,
		routes:  make(map[string]*route[Tx]),
		unknown: &route[Tx]{settings: settings{retry: &cfg.Retry}},
		wake:    make(chan struct{}, 1),
		help:    make(chan struct{}, max(cfg.Retriers, 1)),
	}, nil
}

// Name returns the consumer's name.
func (in *Inbox[Tx]) Name() string { return in.name }

// Feed returns the feed name under which operators find the deferred messages of a consumer.
func Feed(consumer string) string { return feedPrefix + consumer }

// ConsumerOf returns the name of the consumer that a [Feed] belongs to. It is empty for a feed of
// relays.
func ConsumerOf(feed string) string {
	name, ok := strings.CutPrefix(feed, feedPrefix)
	if !ok {
		return ""
	}
	return name
}

const feedPrefix = "inbox/"

// open registers the consumer with the store and checks that the store remembers messages for long
// enough.
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

// Receive is a [postrider.Handler] for any consumer. It returns nil when the message is handled,
// was handled before, or is deferred. An error is always [postrider.Unavailable] and means that the
// consumer's database could not be reached: deliver the message again, and do not count the attempt
// against it.
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
	if m.Type == feeds.CanaryType {
		return nil
	}
	in.identify(&m)
	if r := in.routeOf(m.Type); r.batch != nil {
		return r.batch.receive(ctx, m)
	}
	return in.receive(ctx, m)
}

// receive handles one message in a transaction of its own.
func (in *Inbox[Tx]) receive(ctx context.Context, m postrider.Message) error {
	r := in.routeOf(m.Type)
	if r.slots != nil {
		if err := slot.Wait(ctx, r.slots); err != nil {
			return err
		}
		defer func() { <-r.slots }()
	}
	verdicts, err := in.store.Handle(ctx, in.name, []postrider.Message{m}, in.cfg.AcceptLate,
		func(ctx context.Context, tx Tx, _ []int) error { return in.dispatch(ctx, tx, r, m) })
	var failed *FailedError
	if errors.As(err, &failed) {
		return in.deferFailed(ctx, m, failed.Err)
	}
	if err != nil {
		return err
	}
	in.count(verdicts[0], &m)
	return nil
}

// dispatch calls the handler of a message.
func (in *Inbox[Tx]) dispatch(ctx context.Context, tx Tx, r *route[Tx], m postrider.Message) error {
	if r.handle == nil {
		if in.cfg.IgnoreUnknown {
			return nil
		}
		return postrider.Permanent(fmt.Errorf("%w: %q", ErrNoHandler, m.Type))
	}
	ctx, done := in.observe(ctx, m)
	err := in.guard(r, func(ctx context.Context, m postrider.Message) error { return r.handle(ctx, tx, m) })(ctx, m)
	done(err)
	return err
}

// guard wraps a handler: it turns a panic into an error, enforces the timeout and applies
// middleware.
func (in *Inbox[Tx]) guard(r *route[Tx], handle postrider.Handler) postrider.Handler {
	return func(ctx context.Context, m postrider.Message) error {
		err := middleware.Wrap(handle, r.around...)(context.WithValue(ctx, messageKey{}, m), m)
		var p *middleware.PanicError
		if errors.As(err, &p) {
			in.cfg.Logger.Error("inbox: handler panicked", "consumer", in.name, "", m, "panic", p.Value, "stack", p.Stack)
		}
		return err
	}
}

type messageKey struct{}

// Message returns the message that is being handled, for handlers that receive only its decoded
// payload. In a batch handler it returns the first message. The second result is false outside of a
// handler.
func Message(ctx context.Context) (postrider.Message, bool) {
	m, ok := ctx.Value(messageKey{}).(postrider.Message)
	return m, ok
}
