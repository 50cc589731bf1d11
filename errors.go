package postrider

import (
	"errors"
	"time"
)

var (
	// ErrInvalid matches every [*InvalidError]: the message is not acceptable.
	ErrInvalid = errors.New("postrider: invalid message")

	// ErrUnsupported means that the store cannot do what was asked, such as accepting that many messages at once.
	ErrUnsupported = errors.New("postrider: not supported by this store")

	// ErrNotTried is returned by a [Publisher], marked as [Unavailable], for a message that it did
	// not send because an earlier message of the same key failed, or because too little time was left.
	ErrNotTried = errors.New("postrider: not sent, because an earlier message failed")
)

// Class is the failure class of a publication: what the error means for the message.
type Class int

const (
	// ClassUnknown is the default: the message may or may not have arrived. The relay sends it again with the same ID.
	ClassUnknown Class = iota
	// ClassPermanent means that the destination will never accept this message.
	ClassPermanent
	// ClassUnavailable means that nothing is accepted at the moment; the message is not the cause. See [Scope].
	ClassUnavailable
)

// String returns the class as one lower-case word.
func (c Class) String() string {
	switch c {
	case ClassPermanent:
		return "permanent"
	case ClassUnavailable:
		return "unavailable"
	default:
		return "unknown"
	}
}

// Scope is how far a failure reaches: which other messages would fail too.
type Scope int

const (
	// ScopeUnknown is the default. The relay infers the scope from the outcome of other messages.
	ScopeUnknown Scope = iota
	// ScopeMessage means only this message, such as one that is too large.
	ScopeMessage
	// ScopeName means all messages that go to the same queue, topic, subject or endpoint; see broker.Namer.
	ScopeName
	// ScopeDestination means every message to the destination.
	ScopeDestination
)

// String returns the scope as one lower-case word.
func (s Scope) String() string {
	switch s {
	case ScopeMessage:
		return "message"
	case ScopeName:
		return "name"
	case ScopeDestination:
		return "destination"
	default:
		return "unknown"
	}
}

type classified struct {
	error
	class Class
	scope Scope
}

func (e *classified) Unwrap() error { return e.error }

// Permanent marks err as a final rejection of the message. Permanent(nil) is nil.
func Permanent(err error) error { return classify(err, ClassPermanent, ScopeMessage) }

// Unavailable marks err as an outage of the whole destination. Unavailable(nil) is nil.
func Unavailable(err error) error { return classify(err, ClassUnavailable, ScopeDestination) }

// NameUnavailable marks err as an outage of one name, such as a queue that is full or a topic that is missing or forbidden,
// while other names may work. NameUnavailable(nil) is nil.
func NameUnavailable(err error) error { return classify(err, ClassUnavailable, ScopeName) }

// RetryAfter marks err as an outage, like [Unavailable], that lasts at least d: the message is not retried earlier. Consumers
// accept it from handlers, relays from publishers. RetryAfter(nil, d) is nil.
func RetryAfter(err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	return Unavailable(&delayed{err, d})
}

type delayed struct {
	error
	after time.Duration
}

func (e *delayed) Unwrap() error { return e.error }

// RetryAfter makes retry.DelayOf find the delay.
func (e *delayed) RetryAfter() time.Duration { return e.after }

func classify(err error, class Class, scope Scope) error {
	if err == nil {
		return nil
	}
	return &classified{err, class, scope}
}

// ClassOf returns the class that err, or an error that it wraps, was marked with.
func ClassOf(err error) Class {
	var c *classified
	if errors.As(err, &c) {
		return c.class
	}
	return ClassUnknown
}

// ScopeOf returns the scope that err, or an error that it wraps, was marked with.
func ScopeOf(err error) Scope {
	var c *classified
	if errors.As(err, &c) {
		return c.scope
	}
	return ScopeUnknown
}
