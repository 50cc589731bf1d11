package pubsub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/protobuf/proto"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/codec"
)

const (
	maxMessages   = 1000       // per request
	maxRequest    = 10_000_000 // bytes of a request, and so of a message with all its parts
	maxAttributes = 100
	maxAttribute  = 256     // bytes of an attribute's name
	maxValue      = 1024    // bytes of an attribute's value
	maxKey        = 1024    // bytes of an ordering key
	batchBytes    = 1 << 20 // size at which a request is sent: far below the limit, so that requests stay fast; one message may exceed it
	requestTime   = time.Minute
	contentType   = "content-type"
)

var (
	_ broker.OrderKeeper = (*Publisher)(nil)
	_ broker.Inspector   = (*Publisher)(nil)
	_ broker.Namer       = (*Publisher)(nil)
)

// Publisher sends each message to the Pub/Sub topic with the message's name.
//
// It calls the Publish API directly. Google's own publisher collects messages over time, silently
// resends failed requests, and blocks a key after a failure until it is resumed. The relay already
// sends batches, and decides itself what to resend. A request has one outcome for all its messages.
type Publisher struct {
	cfg    Config
	coder  *codec.Codec
	keeper *keeper
}

// NewPublisher returns a publisher. It does not connect. Errors concern the configuration.
func NewPublisher(cfg Config) (*Publisher, error) {
	coder, err := cfg.prepare()
	if err != nil {
		return nil, err
	}
	return &Publisher{cfg: cfg, coder: coder, keeper: cfg.newKeeper()}, nil
}

// KeepsOrder reports true with ordering keys: messages of a key are sent in successive requests, up
// to the first that fails.
func (p *Publisher) KeepsOrder() bool { return !p.cfg.Unordered }

// NameOf returns the topic with its project, if the name is valid.
func (p *Publisher) NameOf(m *postrider.Message) string {
	topic, err := p.cfg.path("topics", p.coder.Name(m))
	if err != nil {
		return p.coder.Name(m)
	}
	return topic
}

// Publish sends the messages and waits for the service's answers.
func (p *Publisher) Publish(ctx context.Context, msgs []postrider.Message) []error {
	if len(msgs) == 0 {
		return nil
	}
	conn, err := p.keeper.Get(ctx)
	if err != nil {
		return slices.Repeat([]error{postrider.Unavailable(err)}, len(msgs))
	}
	c := &call{conn: conn, errs: make([]error, len(msgs))}
	chains := p.chains(msgs, c.errs)
	next := make(chan *chain, len(chains))
	for _, ch := range chains {
		next <- ch
	}
	close(next)
	var run sync.WaitGroup
	for range min(p.cfg.Requests, len(chains)) {
		run.Go(func() {
			for ch := range next {
				c.send(ctx, ch)
			}
		})
	}
	run.Wait()
	if slices.ContainsFunc(c.errs, func(err error) bool { return err != nil }) {
		return c.errs
	}
	return nil
}

// Close closes the connections. It may be called twice.
func (p *Publisher) Close() error {
	p.keeper.Close()
	return nil
}

// chain is a sequence of requests sent one after the other: the messages of one key, in order
// across all their topics, or those without an ordering key for one topic.
type chain struct {
	batches []batch
	ordered bool
	refused bool // nothing more may be added
}

// batch is a request with the index of each message in the call.
type batch struct {
	*pubsubpb.PublishRequest
	indexes []int
	bytes   int
}

// chains encodes the messages. It sets the errors of messages that the service would never accept,
// and of messages behind those with the same key.
func (p *Publisher) chains(msgs []postrider.Message, errs []error) (all []*chain) {
	type id struct{ key, name string }
	chains := make(map[id]*chain)
	for i := range msgs {
		of := id{key: msgs[i].OrderKey()}
		if p.cfg.Unordered || of.key == "" {
			of = id{name: p.coder.Name(&msgs[i])}
		}
		ch := chains[of]
		if ch == nil {
			ch = &chain{ordered: of.key != ""}
			chains[of], all = ch, append(all, ch)
		}
		topic, m, size, err := p.encode(&msgs[i])
		switch {
		case ch.refused:
			errs[i] = postrider.Unavailable(postrider.ErrNotTried)
		case err != nil:
			errs[i], ch.refused = postrider.Permanent(err), ch.ordered
		default:
			ch.add(i, topic, m, size)
		}
	}
	return all
}

func (ch *chain) add(i int, topic string, m *pubsubpb.PubsubMessage, size int) {
	last := len(ch.batches) - 1
	if last < 0 || ch.batches[last].Topic != topic || len(ch.batches[last].indexes) == maxMessages || ch.batches[last].bytes+size > batchBytes {
		ch.batches = append(ch.batches, batch{PublishRequest: &pubsubpb.PublishRequest{Topic: topic}})
		last++
	}
	b := &ch.batches[last]
	b.Messages, b.indexes, b.bytes = append(b.Messages, m), append(b.indexes, i), b.bytes+size
}

// call is one Publish. Each entry of errs is written by the goroutine that sends the message's
// chain.
type call struct {
	conn connection
	errs []error
}

// send sends a chain. After a failure in an ordered chain, nothing more is sent. The service
// refuses a request as a whole: if it refuses it because of a message, the messages are sent one by
// one, so that the others get through.
func (c *call) send(ctx context.Context, ch *chain) {
	failed := false
	for batches := ch.batches; len(batches) > 0; {
		b := batches[0]
		batches = batches[1:]
		err := postrider.Unavailable(postrider.ErrNotTried)
		if !failed {
			err = c.request(ctx, b.PublishRequest)
		}
		if postrider.ClassOf(err) == postrider.ClassPermanent && len(b.indexes) > 1 {
			single := make([]batch, len(b.indexes))
			for n := range single {
				single[n] = batch{&pubsubpb.PublishRequest{Topic: b.Topic, Messages: b.Messages[n : n+1]}, b.indexes[n : n+1], 0}
			}
			batches = append(single, batches...)
			continue
		}
		failed = err != nil && ch.ordered
		for _, i := range b.indexes {
			c.errs[i] = err
		}
	}
}

func (c *call) request(ctx context.Context, r *pubsubpb.PublishRequest) error {
	if ctx.Err() != nil {
		return postrider.Unavailable(fmt.Errorf("pubsub: not sent: %w", context.Cause(ctx)))
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime) // the caller's context may have no deadline
	defer cancel()
	answer, err := c.conn.TopicAdminClient.Publish(ctx, r)
	if err != nil {
		return meaning(ctx, r.Topic, err)
	}
	if len(answer.MessageIds) != len(r.Messages) {
		return fmt.Errorf("%w: %d messages were sent, and the service has given IDs to %d", errNotConfirmed, len(r.Messages), len(answer.MessageIds))
	}
	return nil
}

// encode returns the topic, the message and its size in a request, or the reason why the service
// would never accept it.
func (p *Publisher) encode(m *postrider.Message) (topic string, out *pubsubpb.PubsubMessage, size int, err error) {
	var packet codec.Packet
	p.coder.Encode(m, &packet)
	if topic, err = p.cfg.path("topics", packet.Name); err != nil {
		return topic, nil, 0, err
	}
	out = &pubsubpb.PubsubMessage{Data: packet.Body, Attributes: make(map[string]string, len(packet.Headers)+1)}
	if !p.cfg.Unordered {
		out.OrderingKey = packet.Key
	}
	for _, h := range packet.Headers {
		out.Attributes[h.Name] = h.Value
	}
	if packet.ContentType != "" {
		out.Attributes[contentType] = packet.ContentType
	}
	const framing = 16 // bytes of overhead per request and per message
	size = proto.Size(out) + framing
	return topic, out, size, check(out, size+len(topic))
}

// check enforces the service's limits.
func check(m *pubsubpb.PubsubMessage, size int) error {
	err := cmp.Or(over("message", size, maxRequest), over("ordering key", len(m.OrderingKey), maxKey))
	if len(m.Attributes) > maxAttributes {
		err = fmt.Errorf("pubsub: the message has %d attributes, more than the %d that Pub/Sub accepts", len(m.Attributes), maxAttributes)
	}
	valid := utf8.ValidString(m.OrderingKey)
	for name, value := range m.Attributes {
		err = cmp.Or(err, over("name of an attribute", len(name), maxAttribute), over(name, len(value), maxValue))
		valid = valid && utf8.ValidString(name) && utf8.ValidString(value)
		if name == "" || strings.HasPrefix(strings.ToLower(name), "goog") {
			err = fmt.Errorf("pubsub: attribute %q: Pub/Sub accepts no empty name, and none that begins with goog", name)
		}
	}
	if err == nil && !valid {
		err = errors.New("pubsub: the ordering key or an attribute is not valid UTF-8")
	}
	return err
}

func over(what string, size, most int) error {
	if size <= most {
		return nil
	}
	return fmt.Errorf("pubsub: %s has %d bytes, more than the %d that Pub/Sub accepts", what, size, most)
}
