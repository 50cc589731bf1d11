package memory

import (
	"context"
	"sync"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/intake"
)

// group is the state that consumers of one topic and group share.
type group struct {
	acked map[int]bool // by index of Broker.messages
}

// Consumer returns a consumer of the messages with the given topic, including those sent before.
// Consumers of one group continue where the previous one stopped: acknowledged messages are not
// delivered again. Limit is the maximum number of messages handled concurrently; 0 means 64.
func (b *Broker) Consumer(topic, groupName string, limit int) postrider.Consumer {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.groups == nil {
		b.groups = make(map[[2]string]*group)
	}
	id := [2]string{topic, groupName}
	if b.groups[id] == nil {
		b.groups[id] = &group{acked: make(map[int]bool)}
	}
	return &consumer{broker: b, topic: topic, group: b.groups[id], limit: limit}
}

type consumer struct {
	broker *Broker
	topic  string
	group  *group
	limit  int
	one    sync.Mutex // serialises Consume
}

func (c *consumer) Consume(ctx context.Context, handle postrider.Handler) error {
	c.one.Lock()
	defer c.one.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	in := intake.Open(ctx, handle, intake.Config{Limit: c.limit})
	defer in.Wait()
	defer cancel()
	for next := 0; ; {
		m, at, arrived := c.find(next)
		if m == nil {
			select {
			case <-arrived:
				continue
			case <-ctx.Done():
				return nil
			}
		}
		next = at + 1
		if !in.Accept(intake.Delivery{Message: *m, Done: func() { c.ack(at) }}) { //nolint:contextcheck // the intake has its own
			return nil
		}
	}
}

// find returns the first unacknowledged message at or after from, or a channel that is closed when
// more messages arrive.
func (c *consumer) find(from int) (*postrider.Message, int, <-chan struct{}) {
	b := c.broker
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := from; i < len(b.messages); i++ {
		if b.messages[i].Topic == c.topic && !c.group.acked[i] {
			m := clone(b.messages[i])
			return &m, i, nil
		}
	}
	return nil, 0, b.arrived
}

func (c *consumer) ack(i int) {
	c.broker.mu.Lock()
	defer c.broker.mu.Unlock()
	c.group.acked[i] = true
}

// Close does nothing.
func (c *consumer) Close() error { return nil }
