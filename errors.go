package postrider

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

var (
	// ErrInvalid matches every [*InvalidError]: the message itself cannot be accepted.
	ErrInvalid = errors.New("postrider: invalid message")

	// ErrUnsupported means that a store cannot do what a message asks for, such as taking more at once than it can.
	ErrUnsupported = errors.New("postrider: not supported by this store")

	// ErrReset means that a store no longer vouches for what a [Feed] has handed out, for instance because the
	// database crashed and recovered. All batches read before are void; the next Balance starts from what was settled.
	ErrReset = errors.New("postrider: feed was reset")

	// ErrForeign means that the database is not the one that the ledger was written in: a restored dump, a clone.
	// Sending from it could repeat what the original has sent. An operator decides.
	ErrForeign = errors.New("postrider: the ledger belongs to another database")

	// ErrSchema means that the store's tables are missing or have another version than this program needs.
	ErrSchema = errors.New("postrider: store schema is missing or has the wrong version")

	// ErrNoFeed matches every [*NoFeedError]: there is no feed of that name.
	ErrNoFeed = errors.New("postrider: no such feed")

	// ErrDestination matches every [*DestinationError]: the feed sends to another destination.
	ErrDestination = errors.New("postrider: the feed has another destination")

	// ErrNotTried is what a [Publisher] reports, as [Unavailable], for a message that it did not send because an earlier
	// one of the same key had failed.
	ErrNotTried = errors.New("postrider: not sent, because an earlier message failed")
)

// NoFeedError says that a feed does not exist, and which do. It matches [ErrNoFeed].
type NoFeedError struct {
	Feed  string
	Feeds []string // by name
}

func (e *NoFeedError) Error() string {
	const most = 10
	names := make([]string, 0, most+1)
	for i, name := range e.Feeds {
		if i == most {
			names = append(names, fmt.Sprintf("%d more", len(e.Feeds)-most))
			break
		}
		names = append(names, strconv.Quote(name))
	}
	return fmt.Sprintf("there is no feed %q: there are %s", e.Feed, strings.Join(names, ", "))
}

// Is makes errors.Is(err, ErrNoFeed) true.
func (e *NoFeedError) Is(target error) bool { return target == ErrNoFeed }

// DestinationError says where a feed sends to, and what a member has brought instead. It matches [ErrDestination].
type DestinationError struct{ Feed, Has, Wants string }

func (e *DestinationError) Error() string {
	return fmt.Sprintf("feed %q sends to %q, and this relay would send to %q", e.Feed, e.Has, e.Wants)
}

// Is makes errors.Is(err, ErrDestination) true.
func (e *DestinationError) Is(target error) bool { return target == ErrDestination }

// Class says what a failed publication means for the message.
type Class int

const (
	// ClassUnknown is the class of every error that says nothing else: the message may or may not have arrived. It is
	// sent again with the same ID.
	ClassUnknown Class = iota
	// ClassPermanent means that the destination will never accept this message.
	ClassPermanent
	// ClassUnavailable means that nothing is accepted at the moment, and the message is not to blame. [Scope] says where.
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

// Scope says what a failed publication is about: who else would fail too.
type Scope int

const (
	// ScopeUnknown is the scope of every error that says nothing else. What becomes of other messages will tell.
	ScopeUnknown Scope = iota
	// ScopeMessage means this message alone, such as one that is too large.
	ScopeMessage
	// ScopeName means all messages that go to the same queue, topic, subject or endpoint; see [Namer].
	ScopeName
	// ScopeDestination means everything that is sent there.
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

// Permanent marks err as the destination's last word on a message. Permanent(nil) is nil.
func Permanent(err error) error { return classify(err, ClassPermanent, ScopeMessage) }

// Unavailable marks err as an outage of the whole destination. Unavailable(nil) is nil.
func Unavailable(err error) error { return classify(err, ClassUnavailable, ScopeDestination) }

// NameUnavailable marks err as an outage of the name that the message goes to, while others may be well: a queue that is
// full, a topic that is missing or forbidden. NameUnavailable(nil) is nil.
func NameUnavailable(err error) error { return classify(err, ClassUnavailable, ScopeName) }

// RetryAfter marks err as an outage, as [Unavailable] does, that is known to last for at least d: what has failed is not tried
// again before. Consumers take it from handlers, relays from publishers. RetryAfter(nil, d) is nil.
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

// RetryAfter makes [DelayOf] find the delay.
func (e *delayed) RetryAfter() time.Duration { return e.after }

// DelayOf returns for how long err, or an error that it wraps, asks to be left alone: that of [RetryAfter], or of any error with a
// method RetryAfter() time.Duration, such as what an HTTP server has said. 0 means that it does not ask.
func DelayOf(err error) time.Duration {
	var d interface{ RetryAfter() time.Duration }
	if errors.As(err, &d) {
		return d.RetryAfter()
	}
	return 0
}

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
