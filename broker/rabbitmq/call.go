package rabbitmq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/postrider/postrider"
)

// errUnsent is the outcome of a message until it is sent.
var errUnsent = errors.New("rabbitmq: not sent")

// call is one call of Publish.
type call struct {
	msgs   []postrider.Message
	errs   []error
	routes map[string]string // routing key of the last message sent, by ordering key
	broken map[string]bool   // keys with a failed message

	forbidden map[string]error // routes for which the server closes the channel: not retried in this call
}

func (c *call) settle(i int, err error) {
	c.errs[i] = err
	if key := c.msgs[i].OrderKey(); err != nil && key != "" {
		if c.broken == nil {
			c.broken = make(map[string]bool)
		}
		c.broken[key] = true
	}
}

// run sends the messages from one index to another without waiting in between, and then waits for
// their outcomes. An error is the reason why some were not sent, or why the channel is unusable.
func (c *call) run(ctx context.Context, l *link, from, to int) error {
	one, err := l.take()
	if err != nil {
		return err
	}
	defer l.put(one)
	for i := from; i < to && err == nil && !one.ch.IsClosed(); i++ {
		if c.errs[i] == nil {
			continue // confirmed
		}
		if err = ctx.Err(); err == nil && l.blocked.Load() {
			err = errBlocked
		}
		if err == nil {
			err = c.send(ctx, one, i)
		}
	}
	return cmp.Or(one.collect(ctx, c.settle), err)
}

func (c *call) send(ctx context.Context, one *channel, i int) error {
	out, route, err := one.encode(&c.msgs[i])
	if err != nil {
		c.settle(i, postrider.Permanent(fmt.Errorf("rabbitmq: %w", err)))
		return nil
	}
	if key := one.packet.Key; key != "" {
		// Messages with one key and one route are either all routed or all returned. Before the
		// route changes, wait for possible returns.
		if before, ok := c.routes[key]; ok && before != route {
			if err := one.collect(ctx, c.settle); err != nil {
				return err
			}
		}
		c.routes[key] = route
		if c.broken[key] {
			c.errs[i] = postrider.Unavailable(postrider.ErrNotTried)
			return nil
		}
	}
	if err := c.forbidden[route]; err != nil {
		c.settle(i, err)
		return nil
	}
	return one.send(i, route, out)
}

// deliver sends all messages. If the server closes the channel because of one message, deliver
// finds and skips it, and sends the messages behind it together again.
func (c *call) deliver(ctx context.Context, l *link) error {
	for from := 0; from < len(c.msgs); {
		err := c.run(ctx, l, from, len(c.msgs))
		if exception(err) == nil {
			return err
		}
		if from, err = c.findRefused(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

// findRefused finds the message because of which the server closed the channel. It resends the
// messages without a known outcome one at a time. Some of them then arrive twice, as they would if
// the relay resent them. It returns the index after that message.
func (c *call) findRefused(ctx context.Context, l *link) (next int, err error) {
	c.broken = nil
	for i, was := range c.errs {
		if !errors.Is(was, errUnsent) && !errors.Is(was, errLost) {
			c.settle(i, was)
			continue
		}
		c.errs[i] = errUnsent
		err := c.run(ctx, l, i, i+1)
		switch e := exception(err); {
		case e != nil && e.Code == amqp.AccessRefused && strings.Contains(e.Reason, "access to topic '"):
			route := l.p.NameOf(&c.msgs[i])
			c.forbidden[route] = postrider.NameUnavailable(e)
			c.settle(i, c.forbidden[route])
			return i + 1, nil
		case e != nil && (e.Code == amqp.NotFound || e.Code == amqp.AccessRefused):
			// The exchange itself is refused: the messages behind it would be refused as well.
			for j := i; j < len(c.errs); j++ {
				if errors.Is(c.errs[j], errLost) {
					c.errs[j] = errUnsent
				}
			}
			return 0, err
		case e != nil:
			c.settle(i, postrider.Permanent(e))
			return i + 1, nil
		case err != nil:
			if errors.Is(c.errs[i], errUnsent) {
				c.errs[i] = was
			}
			return 0, err
		}
	}
	return len(c.errs), nil
}

// result sets the outcome of unsent messages to the given reason.
func (c *call) result(err error) []error {
	unsent := postrider.Unavailable(cmp.Or(err, postrider.ErrNotTried))
	failed := false
	for i := range c.errs {
		if errors.Is(c.errs[i], errUnsent) {
			c.errs[i] = unsent
		}
		failed = failed || c.errs[i] != nil
	}
	if !failed {
		return nil
	}
	return c.errs
}
