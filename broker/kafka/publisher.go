package kafka

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/codec"
)

var (
	_ broker.OrderKeeper = (*Publisher)(nil)
	_ broker.Inspector   = (*Publisher)(nil)
	_ broker.Namer       = (*Publisher)(nil)
)

// Publisher is a [postrider.Publisher] for Kafka. It is safe for concurrent use: each Publish has a producer of its own
// as long as it lasts.
type Publisher struct {
	cfg    Config
	coder  *codec.Codec
	idle   chan *session // producers for later calls
	counts sync.Map      // topic → number of its partitions
}

// NewPublisher returns a publisher. It does not connect; errors are about the configuration, all of them at once.
func NewPublisher(cfg Config) (*Publisher, error) {
	coder, err := cfg.prepare()
	if err != nil {
		return nil, err
	}
	p := &Publisher{cfg: cfg, coder: coder, idle: make(chan *session, 32)}
	s, err := p.newSession() // the client has its own rules on settings
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	p.give(s)
	return p, nil
}

// Publish implements [postrider.Publisher].
func (p *Publisher) Publish(ctx context.Context, msgs []postrider.Message) []error {
	ctx, stop := context.WithTimeout(ctx, p.cfg.Timeout)
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	all := make([]int, len(msgs))
	for i := range all {
		all[i] = i
	}
	c := &call{p: p, ctx: ctx, cancel: cancel, msgs: msgs}
	for waves := [][]int{all}; len(waves) > 0; {
		waves = append(c.wave(waves[0]), waves[1:]...)
	}
	return c.errs
}

// KeepsOrder is true: see the package comment.
func (p *Publisher) KeepsOrder() bool { return true }

// NameOf returns the topic.
func (p *Publisher) NameOf(m *postrider.Message) string { return p.coder.Name(m) }

// Close closes all producers.
func (p *Publisher) Close() error {
	p.dropIdle()
	return nil
}

// take returns a producer that nobody else uses.
func (p *Publisher) take() *session {
	select {
	case s := <-p.idle:
		return s
	default:
		s, err := p.newSession()
		if err != nil {
			panic(err) // NewPublisher has made one with the same settings
		}
		return s
	}
}

// give takes a producer back.
func (p *Publisher) give(s *session) {
	select {
	case p.idle <- s:
	default:
		s.close()
	}
}

// dropIdle closes the producers that nobody uses.
func (p *Publisher) dropIdle() {
	for {
		select {
		case s := <-p.idle:
			s.close()
		default:
			return
		}
	}
}

// partitioner places keys as the Java client does, and messages without one anywhere. It notices when a topic has more
// partitions than before: keys then live in other partitions than their earlier messages, and consumers can see the two
// out of order. An operator must know.
func (p *Publisher) partitioner(topic string) func(*kgo.Record, int) int {
	keyed, count := kgo.StickyKeyPartitioner(nil).ForTopic(topic), 0
	return func(r *kgo.Record, n int) int {
		if n != count {
			if before, ok := p.counts.Swap(topic, n); ok && before.(int) < n { //nolint:errcheck // there are numbers only
				p.cfg.Logger.Warn("kafka: the topic has more partitions; keys have moved, and their order holds from here on",
					"topic", topic, "before", before, "now", n)
			}
			count = n
		}
		if r.Key == nil {
			return rand.IntN(n)
		}
		return keyed.Partition(r, n)
	}
}
