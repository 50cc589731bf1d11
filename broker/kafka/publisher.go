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
	"github.com/postrider/postrider/broker/internal/stock"
)

var (
	_ broker.OrderKeeper = (*Publisher)(nil)
	_ broker.Inspector   = (*Publisher)(nil)
	_ broker.Namer       = (*Publisher)(nil)
	_ broker.Recaller    = (*Publisher)(nil)
)

// Publisher is a [postrider.Publisher] for Kafka. It is safe for concurrent use: each Publish owns
// a producer while it runs.
type Publisher struct {
	cfg     Config
	coder   *codec.Codec
	idle    chan *session // producers for reuse
	counts  sync.Map      // topic → number of partitions
	recalls stock.Rounds

	mu      sync.Mutex
	senders map[string]*sender // those that publish in transactions
}

// NewPublisher returns a publisher. It does not connect. Errors concern the configuration, all of
// them at once.
func NewPublisher(cfg Config) (*Publisher, error) {
	coder, err := cfg.prepare()
	if err != nil {
		return nil, err
	}
	p := &Publisher{cfg: cfg, coder: coder, idle: make(chan *session, 32), senders: make(map[string]*sender)}
	s, err := p.newSession() // the client validates settings by its own rules
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	p.give(s, true)
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
	from, _ := broker.SenderOf(ctx)
	c := &call{p: p, ctx: ctx, cancel: cancel, from: from, msgs: msgs}
	for waves := [][]int{all}; len(waves) > 0; {
		waves = append(c.wave(waves[0]), waves[1:]...)
	}
	return c.errs
}

// KeepsOrder returns true; see the package comment.
func (p *Publisher) KeepsOrder() bool { return true }

// NameOf returns the topic of m.
func (p *Publisher) NameOf(m *postrider.Message) string { return p.coder.Name(m) }

// Close closes all producers.
func (p *Publisher) Close() error {
	p.dropIdle()
	p.dropSenders(0)
	return nil
}

// take returns a producer for exclusive use.
func (p *Publisher) take(ctx context.Context, from broker.Sender) (*session, error) {
	if p.cfg.Once && from.Name != "" {
		return p.takeOf(ctx, from)
	}
	select {
	case s := <-p.idle:
		return s, nil
	default:
		return p.newSession()
	}
}

// give returns a producer, which is closed if anything has failed.
func (p *Publisher) give(s *session, works bool) {
	switch {
	case s.sender != nil:
		s.sender.give(s, works)
	case works:
		select {
		case p.idle <- s:
		default:
			s.close()
		}
	}
}

// dropIdle closes the pooled producers.
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

// partitioner assigns keys to partitions as the Java client does, and messages without a key to
// random ones. It logs when a topic gains partitions: keys then move to other partitions than their
// earlier messages, and consumers may see them out of order.
func (p *Publisher) partitioner(topic string) func(*kgo.Record, int) int {
	keyed, count := kgo.StickyKeyPartitioner(nil).ForTopic(topic), 0
	return func(r *kgo.Record, n int) int {
		if n != count {
			if before, ok := p.counts.Swap(topic, n); ok && before.(int) < n { //nolint:errcheck // counts holds numbers only
				p.cfg.Logger.Warn("kafka: the topic has gained partitions; keys have moved, and their order holds only from now on",
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
