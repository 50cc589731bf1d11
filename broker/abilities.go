package broker

import (
	"context"

	"github.com/postrider/postrider"
)

// Optional abilities of a publisher. The relay and other callers detect them by type assertion.

// OrderKeeper is implemented by a [postrider.Publisher] that keeps order when a message in the
// middle of a call fails: it accepts no later message of the same key in that call. With any other
// publisher, the relay keeps at most one message per key in flight.
type OrderKeeper interface {
	KeepsOrder() bool
}

// Namer is implemented by a [postrider.Publisher] that sends to several queues, topics, subjects or
// endpoints. An outage of one of them then delays only its own messages. With any other publisher,
// all messages share one name.
type Namer interface {
	// NameOf returns the name that Publish sends m to.
	NameOf(m *postrider.Message) string
}

// Filter is implemented by a [postrider.Publisher] that leaves messages out on purpose. Publish
// returns no error for them, but that says nothing about the destination: the relay does not take it
// for a sign that the destination works, and defers no such message.
type Filter interface {
	// Sends reports whether Publish sends m.
	Sends(m *postrider.Message) bool
}

// Inspector is implemented by a [postrider.Publisher] that can report how durable the confirmations
// of its destination are.
type Inspector interface {
	// Inspect queries the destination's settings for the given names, as in
	// [postrider.Message.Topic]. It sends no message and changes nothing. A name that does not
	// exist is a [Warning]; an error means that the destination did not answer.
	Inspect(ctx context.Context, names []string) (Inspection, error)
}

// Inspection describes what a confirmation of the destination means.
type Inspection struct {
	// Confirmed states in one sentence what the destination has done with a confirmed message.
	Confirmed string
	// Settings are the destination's settings that durability depends on, such as
	// "min.insync.replicas (orders)".
	Settings []Setting
	// Warnings are settings under which a confirmed message can be lost.
	Warnings []Warning
}

// Setting is one setting of a destination, under the destination's own name for it.
type Setting struct{ Name, Value string }

// Warning describes a risk of losing messages and how to remove it.
type Warning struct{ Danger, Remedy string }
