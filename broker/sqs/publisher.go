package sqs

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/codec"
	"github.com/postrider/postrider/broker/sqs/internal/service"
)

const parallel = 8 // concurrent requests of a call

var (
	_ broker.OrderKeeper = (*Publisher)(nil)
	_ broker.Inspector   = (*Publisher)(nil)
	_ broker.Namer       = (*Publisher)(nil)
)

// Publisher sends each message to the Amazon SQS queue or Amazon SNS topic with the message's name.
type Publisher struct {
	cfg     Config
	aws     aws.Config
	coder   *codec.Codec
	service service.Service
	found   sync.Map // addresses by name
}

// NewPublisher returns a publisher. It does not connect. Errors concern the configuration.
func NewPublisher(cfg Config) (*Publisher, error) {
	coder, err := cfg.prepare(false)
	if err != nil {
		return nil, err
	}
	loaded, err := cfg.load()
	if err != nil {
		return nil, err
	}
	p := &Publisher{cfg: cfg, aws: loaded, coder: coder}
	if strings.HasPrefix(cfg.URL, schemeSNS) {
		p.service = service.NewTopics(loaded, cfg.Endpoint, cfg.Account)
	} else {
		p.service = service.NewQueues(loaded, cfg.Endpoint, cfg.Account)
	}
	return p, nil
}

// KeepsOrder returns true. A request contains at most one message per key, because each entry may
// fail on its own, and the next message of the key is sent after that one is confirmed. Consumers
// of standard queues and topics nevertheless receive messages in no order.
//
// A request whose answer is lost may be stored late. In a FIFO queue or topic that cannot change
// the order: the next message of the key follows only after the message was resent and confirmed,
// and the late duplicate is dropped within five minutes.
func (p *Publisher) KeepsOrder() bool { return true }

// NameOf returns the name of the queue or topic.
func (p *Publisher) NameOf(m *postrider.Message) string { return p.coder.Name(m) }

// Close closes the connections.
func (p *Publisher) Close() error {
	closeIdle(&p.aws)
	return nil
}

// call is one Publish.
type call struct {
	p     *Publisher
	msgs  []postrider.Message
	errs  []error
	next  []int // the next message of the same key; 0 if there is none
	names []string
	ready map[string][]ready // by name, in the order in which they became ready
}

// ready is a message that need not wait for another.
type ready struct {
	at int
	service.Entry
}

// batch is a request and its outcome.
type batch struct {
	name    string
	entries []ready
	errs    []error
}

// Publish sends the messages in requests of up to ten and waits for all answers.
func (p *Publisher) Publish(ctx context.Context, msgs []postrider.Message) []error {
	c := &call{p: p, msgs: msgs, errs: make([]error, len(msgs)), next: make([]int, len(msgs)), ready: make(map[string][]ready)}
	last := make(map[string]int, len(msgs))
	var heads []int
	for i := range msgs {
		key := msgs[i].OrderKey()
		before, follows := last[key]
		if follows = follows && key != ""; follows {
			c.next[before] = i
		} else {
			heads = append(heads, i)
		}
		last[key] = i
	}
	for _, i := range heads {
		c.prepare(i)
	}
	answers := make(chan *batch, parallel)
	for flying := 0; ; flying-- {
		for flying < parallel {
			b := c.take(ctx)
			if b == nil {
				break
			}
			flying++
			go func() {
				b.errs = p.send(ctx, b.name, b.entries)
				answers <- b
			}()
		}
		if flying == 0 {
			break
		}
		b := <-answers
		for n, r := range b.entries {
			c.settle(r.at, b.errs[n])
		}
	}
	if slices.ContainsFunc(c.errs, func(err error) bool { return err != nil }) {
		return c.errs
	}
	return nil
}

// prepare encodes a message whose predecessors are confirmed.
func (c *call) prepare(i int) {
	var packet codec.Packet
	c.p.coder.Encode(&c.msgs[i], &packet)
	longest, _ := c.p.service.Limits()
	err := service.CheckName(packet.Name, longest)
	var e service.Entry
	if err == nil {
		e, err = service.Pack(&packet, c.p.cfg.Format)
	}
	if err != nil {
		c.settle(i, postrider.Permanent(prefix(err)))
		return
	}
	if len(c.ready[packet.Name]) == 0 {
		c.names = append(c.names, packet.Name)
	}
	c.ready[packet.Name] = append(c.ready[packet.Name], ready{i, e})
}

// settle records the outcome of a message. On success the next message of its key becomes ready;
// otherwise none of them is tried.
func (c *call) settle(i int, err error) {
	c.errs[i] = err
	next := c.next[i]
	if err == nil && next > 0 {
		c.prepare(next)
	}
	for ; err != nil && next > 0; next = c.next[next] {
		c.errs[next] = postrider.Unavailable(postrider.ErrNotTried)
	}
}

// take returns the next request, or nil if there is none. After the end of ctx nothing more is
// sent.
func (c *call) take(ctx context.Context) *batch {
	for len(c.names) > 0 {
		name := c.names[0]
		all := c.ready[name]
		_, most := c.p.service.Limits()
		count, size := 1, all[0].Size
		for count < min(len(all), service.MostEntries) && size+all[count].Size <= most {
			size += all[count].Size
			count++
		}
		c.names = c.names[1:]
		if c.ready[name] = all[count:]; len(all) > count {
			c.names = append(c.names, name) // to the back of the queue: the other names are next
		}
		if ctx.Err() == nil {
			return &batch{name: name, entries: all[:count:count]}
		}
		for _, r := range all[:count] {
			c.settle(r.at, postrider.Unavailable(ctx.Err()))
		}
	}
	return nil
}

// send sends one request and returns one error per entry. If a request is refused as a whole,
// possibly because of one entry, nothing was stored: each entry is then sent alone.
func (p *Publisher) send(ctx context.Context, name string, entries []ready) []error {
	errs := make([]error, len(entries))
	address, err := p.address(ctx, name)
	if err == nil {
		plain := make([]service.Entry, len(entries))
		for i, r := range entries {
			plain[i] = r.Entry
		}
		var each []error
		ctx, sent := service.WithSent(ctx)
		each, err = p.service.Send(ctx, address, plain)
		err = p.classify(name, err, sent.Load())
		for i := range each {
			errs[i] = p.classify(name, each[i], true)
		}
	}
	if err == nil {
		return errs
	}
	if len(entries) > 1 && postrider.ClassOf(err) == postrider.ClassPermanent {
		for i := range entries {
			errs[i] = p.send(ctx, name, entries[i:i+1])[0]
		}
		return errs
	}
	for i := range errs {
		errs[i] = err
	}
	return errs
}

// address returns the address of a name. Its error is classified: nothing was sent.
func (p *Publisher) address(ctx context.Context, name string) (string, error) {
	if address, ok := p.found.Load(name); ok {
		return address.(string), nil //nolint:errcheck,forcetypeassert // nothing else is stored
	}
	address, err := p.service.Locate(ctx, name)
	if err != nil {
		err = p.classify(name, err, false)
		if postrider.ClassOf(err) != postrider.ClassUnavailable {
			err = postrider.Unavailable(err)
		}
		return "", err
	}
	p.found.Store(name, address)
	return address, nil
}

// classify classifies the error of a request for a name.
func (p *Publisher) classify(name string, err error, sent bool) error {
	if service.IsMissing(err) {
		p.found.Delete(name) // if it is created again, its address may differ
	}
	return prefix(service.Classify(p.service, name, err, sent))
}
