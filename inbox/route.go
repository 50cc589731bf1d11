package inbox

import (
	"errors"
	"fmt"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/middleware"
	"github.com/postrider/postrider/retry"
)

// anyType is the type under which the handler of all other types is registered.
const anyType = "*"

// route is what becomes of the messages of a type.
type route[Tx any] struct {
	settings
	handle Handler[Tx] // nil if there is none
	batch  *batcher[Tx]
	around []postrider.Middleware // the handler
	room   chan struct{}          // of those at work; nil if there is no limit
}

// Option configures how messages of a type are handled.
type Option func(*settings)

type settings struct {
	schema
	retry       *retry.Policy // nil, before it is registered, if it is the inbox's
	timeout     time.Duration
	concurrency int
	wrap        []postrider.Middleware
}

// Retry is [Config.Retry] for the messages of a type. What it leaves open is as there.
func Retry(policy retry.Policy) Option { return func(s *settings) { s.retry = &policy } }

// Timeout overrides [Config.Timeout] for a type.
func Timeout(limit time.Duration) Option { return func(s *settings) { s.timeout = limit } }

// Concurrency bounds how many messages of a type are handled at the same time by this process, for handlers that call what stands no
// more. Those that wait take no place from messages of other types.
func Concurrency(n int) Option { return func(s *settings) { s.concurrency = n } }

// Use wraps the handler of a type, inside of [Config.Middleware].
func Use(all ...postrider.Middleware) Option {
	return func(s *settings) { s.wrap = append(s.wrap, all...) }
}

// Handle registers the handler for a type of message. The type "*" stands for all that have no handler of their own. A type
// has one handler: a second registration is an error, which Run and Receive return.
func (in *Inbox[Tx]) Handle(messageType string, handle Handler[Tx], options ...Option) {
	in.register(messageType, handle, nil, options)
}

// HandleBatch registers a handler for a type of message, as Handle does. It is called with those that have come while the transaction
// before was under way, up to [Config.Batch] of them. If it fails, it is called again with each of them alone. Middleware is
// not around it, for it knows single messages only.
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
	complain := func(wrong bool, format string, args ...any) {
		if wrong {
			in.misuse = errors.Join(in.misuse, fmt.Errorf("inbox: consumer %q: type %q "+format, append([]any{in.name, messageType}, args...)...))
		}
	}
	complain(messageType == "" || handle == nil, "is empty or has no handler: want a type and a handler that is not nil")
	complain(in.routes[messageType] != nil, "has two handlers")
	complain(r.timeout < 0, "has the Timeout %s: want a positive time", r.timeout)
	complain(r.concurrency < 0, "has the Concurrency %d: want a positive number", r.concurrency)
	complain(batch != nil && r.concurrency > 0, "has the Concurrency %d, but batches of a type are handled one after the other", r.concurrency)
	complain(batch != nil && len(r.wrap) > 0, "has middleware (Use), which is for handlers of single messages, and a handler of batches")
	if r.retry == nil {
		r.retry = &in.cfg.Retry
	} else {
		if err := r.retry.Validate(); err != nil {
			complain(true, "has a Retry that is wrong: %w", err)
		}
		own := r.retry.Or(in.cfg.Retry)
		r.retry = &own
	}
	if r.timeout <= 0 {
		r.timeout = in.cfg.Timeout
	}
	if r.concurrency > 0 {
		r.room = make(chan struct{}, r.concurrency)
	}
	r.around = []postrider.Middleware{middleware.Recover(), middleware.Timeout(r.timeout)}
	if batch != nil {
		batch.route = r
	} else {
		r.around = append(append(r.around, in.cfg.Middleware...), r.wrap...)
	}
	in.routes[messageType] = r
}

// routeOf returns what becomes of messages of a type.
func (in *Inbox[Tx]) routeOf(messageType string) *route[Tx] {
	if r := in.routes[messageType]; r != nil {
		return r
	}
	if r := in.routes[anyType]; r != nil {
		return r
	}
	return in.unknown
}

// usable reports what is wrong with the handlers.
func (in *Inbox[Tx]) usable() error {
	if len(in.routes) == 0 {
		return fmt.Errorf("inbox: consumer %q has no handlers: register them before Run or Receive", in.name)
	}
	return in.misuse
}
