package asynq

import (
	"context"
	"errors"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/redis/internal/server"
)

var (
	_ postrider.Publisher = (*Publisher)(nil)
	_ broker.OrderKeeper  = (*Publisher)(nil)
	_ broker.Inspector    = (*Publisher)(nil)
)

// Publisher enqueues messages as tasks. Each message is a call of its own, because asynq cannot
// enqueue in batches.
type Publisher struct {
	cfg     Config
	options *redis.Options
	senders chan *sender  // idle senders
	asks    *redis.Client // for Inspect
	close   func() error
}

// NewPublisher returns a publisher that connects on first use. Errors concern the configuration.
func NewPublisher(cfg Config) (*Publisher, error) {
	options, codec, err := cfg.prepare()
	if err != nil {
		return nil, err
	}
	p := &Publisher{cfg: cfg, options: options, asks: redis.NewClient(options)}
	senders := make([]*sender, cfg.Connections)
	p.senders = make(chan *sender, cfg.Connections)
	for i := range senders {
		senders[i] = newSender(&p.cfg, codec, options)
		p.senders <- senders[i]
	}
	p.close = sync.OnceValue(func() error {
		err := p.asks.Close()
		for _, s := range senders {
			err = errors.Join(err, s.line.client.Close())
		}
		return err
	})
	return p, nil
}

// Publish implements [postrider.Publisher].
func (p *Publisher) Publish(ctx context.Context, msgs []postrider.Message) []error {
	return broker.Each(ctx, msgs, p.cfg.Connections, func(ctx context.Context, m *postrider.Message) error {
		select {
		case s := <-p.senders:
			defer func() { p.senders <- s }()
			return s.send(ctx, m)
		case <-ctx.Done():
			return postrider.Unavailable(ctx.Err())
		}
	})
}

// KeepsOrder returns true: a message is sent only after the previous one of its key was confirmed.
func (p *Publisher) KeepsOrder() bool { return true }

// Close closes all connections.
func (p *Publisher) Close() error { return p.close() }

// Inspect implements [broker.Inspector]. It ignores the names, which are types of tasks.
func (p *Publisher) Inspect(ctx context.Context, _ []string) (broker.Inspection, error) {
	in, err := server.Inspect(ctx, p.asks, 0)
	if err != nil {
		return in, err
	}
	in.Settings = append(in.Settings,
		broker.Setting{Name: "queue", Value: p.cfg.Queue},
		broker.Setting{Name: "retention", Value: p.cfg.Retention.String()},
	)
	return in, nil
}
