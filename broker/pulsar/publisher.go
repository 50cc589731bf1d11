package pulsar

import (
	"context"
	"fmt"
	"slices"
	"sync"

	apache "github.com/apache/pulsar-client-go/pulsar"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/codec"
	"github.com/postrider/postrider/broker/session"
)

const (
	// large is the payload size from which a broker may refuse a message as too large only when the
	// batch is packed, after Publish has moved on: the next message of the key then waits for the
	// answer.
	large       = 64 << 10
	contentType = "content-type"
)

var (
	_ broker.OrderKeeper = (*Publisher)(nil)
	_ broker.Inspector   = (*Publisher)(nil)
	_ broker.Namer       = (*Publisher)(nil)
)

// Publisher sends each message to the topic with the message's name.
type Publisher struct {
	cfg    Config
	coder  *codec.Codec
	client apache.Client
	calls  sync.Pool // finished *call values

	mu     sync.Mutex
	topics map[string]*session.Keeper[*line]
}

// NewPublisher returns a publisher. It does not connect. Errors concern the configuration.
func NewPublisher(cfg Config) (*Publisher, error) {
	coder, err := cfg.prepare(false)
	if err != nil {
		return nil, err
	}
	client, err := cfg.open()
	if err != nil {
		return nil, err
	}
	return &Publisher{cfg: cfg, coder: coder, client: client, topics: make(map[string]*session.Keeper[*line])}, nil
}

// KeepsOrder returns true. Messages of a key go through one queue to one partition. After a
// failure, either that queue ends with everything behind the failure, or the failure was detected
// before anything behind it was sent.
func (p *Publisher) KeepsOrder() bool { return true }

// NameOf returns the topic, including tenant and namespace if the name is valid.
func (p *Publisher) NameOf(m *postrider.Message) string {
	name := p.coder.Name(m)
	if topic, err := topicName(name, p.cfg.Namespace); err == nil {
		return topic
	}
	return name
}

// Publish sends the messages and waits for the broker's answers. If ctx ends first, the producers
// in use are closed, and the outcome of everything else in flight on them is unknown too.
func (p *Publisher) Publish(ctx context.Context, msgs []postrider.Message) []error {
	c := p.newCall(msgs)
	for c.next < len(msgs) {
		p.wave(ctx, c)
	}
	errs := c.errs
	if !c.late {
		c.msgs, c.errs = nil, nil
		p.calls.Put(c)
	}
	if slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
		return errs
	}
	return nil
}

// wave hands messages over, up to one that must wait for the answer to another, and waits for all
// answers.
func (p *Publisher) wave(ctx context.Context, c *call) {
	clear(c.routes)
	clear(c.last)
	c.open = 1
	begin := c.next
	for ; c.next < len(c.msgs); c.next++ {
		key := c.msgs[c.next].OrderKey()
		if key != "" && c.failed[key] {
			c.errs[c.next] = postrider.Unavailable(postrider.ErrNotTried)
			continue
		}
		p.coder.Encode(&c.msgs[c.next], &c.packet)
		r, ok := c.routes[c.packet.Name]
		if !ok {
			r = p.route(ctx, c.packet.Name)
			c.routes[c.packet.Name] = r
		}
		if r.err != nil {
			c.errs[c.next] = r.err
			c.failed[key] = true
			continue
		}
		if before := c.last[key]; before != nil && (before.line != r.line || len(before.Payload) > large) {
			break
		}
		m := c.fill(r.line)
		if !c.hand(m) {
			c.failed[key] = true
		} else if c.mixed && key != "" {
			c.last[key] = m
		}
	}
	c.finish()
	for i := begin; i < c.next; i++ {
		if c.errs[i] != nil {
			c.failed[c.msgs[i].OrderKey()] = true
		}
	}
}

// route starts a call's use of a line. The line ends with the call's context, because otherwise
// messages could still be sent later.
func (p *Publisher) route(ctx context.Context, name string) route {
	topic, err := topicName(name, p.cfg.Namespace)
	if err != nil {
		return route{err: postrider.Permanent(err)}
	}
	p.mu.Lock()
	keeper := p.topics[topic]
	if keeper == nil {
		keeper = session.New("pulsar: "+topic, p.cfg.Logger, func(context.Context) (*line, error) { return p.open(topic) })
		p.topics[topic] = keeper
	}
	p.mu.Unlock()
	l, err := keeper.Get(ctx)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil && postrider.ClassOf(err) == postrider.ClassUnknown {
		err = postrider.Unavailable(err)
	}
	if err != nil {
		return route{err: err}
	}
	l.users.Add(1)
	l.handing.Add(1)
	l.idle.Reset(p.cfg.IdleTimeout)
	stop := context.AfterFunc(ctx, func() { l.end(fmt.Errorf("a publish call was cancelled: %w", ctx.Err())) })
	return route{line: l, stop: stop}
}

// Close closes the producers and their connections.
func (p *Publisher) Close() error {
	var run sync.WaitGroup
	for _, keeper := range p.topics {
		run.Go(keeper.Close)
	}
	run.Wait()
	p.client.Close()
	return nil
}
