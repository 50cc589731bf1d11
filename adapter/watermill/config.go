package watermill

import (
	"context"
	"errors"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/codec"
)

// Config configures a [Destination]. The zero value works.
type Config struct {
	// Topic returns the topic of a message. Defaults to the route's: Message.Topic, or Message.Type
	// without one.
	Topic func(m *postrider.Message) string
	// Format is the message format. Defaults to [codec.CloudEvents].
	Format codec.Format
	// Source is the CloudEvents attribute of that name. Defaults to "postrider".
	Source string
	// Prefix precedes the names of CloudEvents attributes. Defaults to "ce-".
	Prefix string
	// Convert replaces the encoding: Topic, Format, Source and Prefix are then ignored. An error
	// means that the message can never be sent. The result must not share memory with m.
	Convert func(m *postrider.Message) (topic string, out *message.Message, err error)

	// Parallel is the maximum number of concurrent calls of the Watermill publisher. Defaults to
	// 16.
	Parallel int
	// Classify marks known errors of the Watermill publisher with [postrider.Permanent],
	// [postrider.NameUnavailable] or [postrider.Unavailable], and returns all others unchanged. By
	// default it recognises failures to connect.
	Classify func(err error) error
	// Probe checks whether the broker is up, for example with a client's Ping. It is called after
	// an unclassified error: if the probe fails too, the broker is unavailable and the message did
	// not cause the error. Defaults to none.
	Probe func(ctx context.Context) error
}

const defaultParallel = 16

// check reports all mistakes.
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
