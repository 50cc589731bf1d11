package postrider

import "errors"

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

	// ErrNotTried is what a [Publisher] reports, as [Unavailable], for a message that it did not send because an earlier
	// one of the same key had failed.
	ErrNotTried = errors.New("postrider: not sent, because an earlier message failed")
)

// Class says what a failed publication means for the message.
type Class int

const (
	// ClassUnknown is the class of every error that says nothing else: the message may or may not have arrived. It is
	// sent again with the same ID.
	ClassUnknown Class = iota
	// ClassPermanent means that the destination will never accept this message.
	ClassPermanent
	// ClassUnavailable means that the destination accepts nothing at the moment; the message is not to blame.
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

type classified struct {
	error
	class Class
}

func (e *classified) Unwrap() error { return e.error }

// Permanent marks err as the destination's last word on a message. Permanent(nil) is nil.
func Permanent(err error) error { return classify(err, ClassPermanent) }

// Unavailable marks err as an outage of the destination. Unavailable(nil) is nil.
func Unavailable(err error) error { return classify(err, ClassUnavailable) }

func classify(err error, class Class) error {
	if err == nil {
		return nil
	}
	return &classified{err, class}
}

// ClassOf returns the class that err, or an error that it wraps, was marked with.
func ClassOf(err error) Class {
	var c *classified
	if errors.As(err, &c) {
		return c.class
	}
	return ClassUnknown
}
