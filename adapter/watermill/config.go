package watermill

import (
	"context"
	"errors"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/codec"
)

// Config tells a [Destination] how messages are laid out, and what is known of the publisher. The zero value works.
type Config struct {
	// Topic names the topic of a message. Defaults to what the route says: Message.Topic, or Message.Type without one.
	Topic func(m *postrider.Message) string
	// Format is how a message is laid out. Defaults to [codec.CloudEvents].
	Format codec.Format
	// Source is the CloudEvents attribute of that name. Defaults to "postrider".
	Source string
	// Prefix stands before the names of CloudEvents attributes. Defaults to "ce-".
	Prefix string
	// Convert replaces the layout: Topic, Format, Source and Prefix are not looked at. An error means that the message can
	// never be sent. What it returns must not share memory with m.
	Convert func(m *postrider.Message) (topic string, out *message.Message, err error)

	// Parallel is the largest number of calls of the Watermill publisher at a time. Defaults to 16.
	Parallel int
	// Classify marks an error of the Watermill publisher with [postrider.Permanent], [postrider.NameUnavailable] or
	// [postrider.Unavailable] where it knows what the error means, and returns all others as they are. Defaults to knowing failures to connect.
	Classify func(err error) error
	// Probe asks the broker whether it is there, such as a client's Ping. It is called after an error of an unknown kind: if
	// the probe fails too, the broker is unavailable and the message not to blame. Defaults to none.
	Probe func(ctx context.Context) error
}

const defaultParallel = 16

// check reports everything that is wrong.
func (c *Config) check(pub message.Publisher) error {
	var errs []error
	if pub == nil {
		errs = append(errs, errors.New("watermill: the publisher is nil"))
	}
	if c.Parallel < 0 {
		errs = append(errs, fmt.Errorf("watermill: Parallel is negative: %d", c.Parallel))
	}
	return errors.Join(errs...)
}
