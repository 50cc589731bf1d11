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

// errUnsent is the fate of a message until it is sent.
var errUnsent = errors.New("rabbitmq: not sent")

// call is one call of Publish.
type call struct {
	msgs   []postrider.Message
	errs   []error
	routes map[string]string // of the last message sent, by key
	broken map[string]bool   // keys of which a message has failed
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

// run sends the messages from one index to another, all at once, and waits for their fates. An error says why there may
// be some that were not sent, or that the lane has died.
func (c *call) run(ctx context.Context, l *link, from, to int) error {
	one, err := l.take()
	if err != nil {
		return err
	}
	defer l.put(one)
	for i := from; i < to && err == nil && !one.ch.IsClosed(); i++ {
		if err = ctx.Err(); err == nil && l.blocked.Load() {
			err = errBlocked
		}
		if err == nil {
			err = c.send(ctx, one, i)
		}
	}
	return cmp.Or(one.collect(ctx, c.settle), err)
}

func (c *call) send(ctx context.Context, one *lane, i int) error {
	out, route, err := one.encode(&c.msgs[i])
	if err != nil {
		c.settle(i, postrider.Permanent(fmt.Errorf("rabbitmq: %w", err)))
		return nil
	}
	if key := one.packet.Key; key != "" {
		// Messages of one key and one route are all routed, or all returned. Behind another route a return must be awaited.
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
	return one.send(i, route, out)
}

// hunt finds the message that the server closed the channel for: it sends those of unknown fate once more, one at a
// time. Some of them then arrive twice, as they would have if the relay had sent them again.
func (c *call) hunt(ctx context.Context, l *link) error {
	c.broken = nil
	for i, was := range c.errs {
		if !errors.Is(was, errUnsent) && !errors.Is(was, errLost) {
			c.settle(i, was)
			continue
		}
		c.errs[i] = errUnsent
		err := c.run(ctx, l, i, i+1)
		if e := exception(err); e != nil && blames(e) {
			c.settle(i, postrider.Permanent(e))
		} else if e != nil { // alone on its channel, and not accepted, as will be none behind it
			for j := i; j < len(c.errs); j++ {
				if errors.Is(c.errs[j], errLost) {
					c.errs[j] = errUnsent
				}
			}
			return err
		} else if err != nil {
			if errors.Is(c.errs[i], errUnsent) {
				c.errs[i] = was
			}
			return err
		}
	}
	return nil
}

// blames reports whether an exception is about the message and not about the exchange, which concerns all messages.
func blames(e *amqp.Error) bool {
	return e.Code != amqp.NotFound && (e.Code != amqp.AccessRefused || strings.Contains(e.Reason, "access to topic '"))
}

// judge looks at what was returned by the default exchange, where the route is a queue's name: only a queue that does
// not exist is a reason to refuse a message for good. One whose node is down will be back.
func (c *call) judge(ctx context.Context, l *link) {
	checked := make(map[string]error)
	for i, err := range c.errs {
		var u *unroutable
		if !errors.As(err, &u) {
			continue
		}
		if _, ok := checked[u.RoutingKey]; !ok && ctx.Err() == nil {
			checked[u.RoutingKey] = l.checkQueue(u.RoutingKey)
		}
		// A queue whose node is down is not found either, with other words.
		found := checked[u.RoutingKey]
		if e := exception(found); e == nil || e.Code != amqp.NotFound || !strings.Contains(e.Reason, "no queue '") {
			//nolint:errorlint // found may be nil, and is no exception against the message
			c.errs[i] = postrider.Unavailable(fmt.Errorf("%w; asked for the queue, the server says: %v", u, found))
		}
	}
}

// result says of what was not sent that it was for the given reason.
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
