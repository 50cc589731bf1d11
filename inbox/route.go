package inbox

import (
	"errors"
	"fmt"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/middleware"
	"github.com/postrider/postrider/retry"
)

// anyType is the type that registers the handler for all types without a handler of their own.
const anyType = "*"

// route is how the messages of a type are handled.
type route[Tx any] struct {
	settings
	handle Handler[Tx] // nil if there is none
	batch  *batcher[Tx]
	around []postrider.Middleware // middleware, outermost first
	slots  chan struct{}          // semaphore of Concurrency; nil if there is no limit
}

// Option configures how messages of a type are handled.
type Option func(*settings)

type settings struct {
	schema
	retry       *retry.Policy // nil until registered if the type uses the inbox's policy
	timeout     time.Duration
	concurrency int
	wrap        []postrider.Middleware
}

// Retry overrides [Config.Retry] for the messages of a type. Zero fields of the policy keep the
// inbox's values.
func Retry(policy retry.Policy) Option { return func(s *settings) { s.retry = &policy } }

// Timeout overrides [Config.Timeout] for a type.
func Timeout(limit time.Duration) Option { return func(s *settings) { s.timeout = limit } }

// Concurrency limits how many messages of a type this process handles at a time, for handlers that
// call a system with little capacity. Messages that wait for a slot do not block those of other
// types.
func Concurrency(n int) Option { return func(s *settings) { s.concurrency = n } }

// Use wraps the handler of a type, inside of [Config.Middleware].
func Use(all ...postrider.Middleware) Option {
	return func(s *settings) { s.wrap = append(s.wrap, all...) }
}

// Handle registers the handler for a type of message. The type "*" stands for all types without a
// handler of their own. A second registration for a type is an error that Run and Receive return.
func (in *Inbox[Tx]) Handle(messageType string, handle Handler[Tx], options ...Option) {
	in.register(messageType, handle, nil, options)
}

// HandleBatch registers a batch handler for a type of message. The inbox calls it with the messages
// that arrived during the previous transaction, up to [Config.Batch]. If it fails, the inbox calls
// it again with each message alone. Middleware does not apply to it, because middleware handles
// single messages.
func (in *Inbox[Tx]) HandleBatch(messageType string, handle BatchHandler[Tx], options ...Option) {
	if handle == nil {
		in.register(messageType, nil, nil, options)
		return
	}
	in.register(messageType, handle.single, &batcher[Tx]{inbox: in, handle: handle}, options)
}

func (in *Inbox[Tx]) register(messageType string, handle Handler[Tx], batch *batcher[Tx], options []Option) {
	r := &route[Tx]{handle: handle, batch: batch}
	for _, o := range options {
		o(&r.settings)
	}
	check := func(wrong bool, format string, args ...any) {
		if wrong {
			in.misuse = errors.Join(in.misuse, fmt.Errorf("inbox: consumer %q: type %q "+format, append([]any{in.name, messageType}, args...)...))
		}
	}
	check(messageType == "" || handle == nil, "is empty or has no handler: want a type and a handler that is not nil")
	check(in.routes[messageType] != nil, "has two handlers")
	check(r.timeout < 0, "has the Timeout %s: want a positive time", r.timeout)
	check(r.concurrency < 0, "has the Concurrency %d: want a positive number", r.concurrency)
	check(batch != nil && r.concurrency > 0, "has the Concurrency %d, but batches of a type are handled one after the other", r.concurrency)
	check(batch != nil && len(r.wrap) > 0, "has middleware (Use) and a batch handler: middleware works with handlers of single messages only")
	if r.retry == nil {
		r.retry = &in.cfg.Retry
	} else {
		if err := r.retry.Validate(); err != nil {
			check(true, "has an invalid Retry: %w", err)
		}
		own := r.retry.Or(in.cfg.Retry)
		r.retry = &own
	}
	if r.timeout <= 0 {
		r.timeout = in.cfg.Timeout
	}
	if r.concurrency > 0 {
		r.slots = make(chan struct{}, r.concurrency)
	}
	r.around = []postrider.Middleware{middleware.Recover(), middleware.Timeout(r.timeout)}
	if batch != nil {
		batch.route = r
	} else {
		r.around = append(append(r.around, in.cfg.Middleware...), r.wrap...)
	}
	in.routes[messageType] = r
}

// routeOf returns the route of a message type.
func (in *Inbox[Tx]) routeOf(messageType string) *route[Tx] {
	if r := in.routes[messageType]; r != nil {
		return r
	}
	if r := in.routes[anyType]; r != nil {
		return r
	}
	return in.unknown
}

// usable returns an error if there are no handlers or if their registration failed.
func (in *Inbox[Tx]) usable() error {
	if len(in.routes) == 0 {
		return fmt.Errorf("inbox: consumer %q has no handlers: register them before Run or Receive", in.name)
	}
	return in.misuse
}
