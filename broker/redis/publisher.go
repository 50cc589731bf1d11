package redis

import (
	"context"
	"fmt"
	"slices"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/codec"
	"github.com/postrider/postrider/broker/internal/stock"
	"github.com/postrider/postrider/broker/redis/internal/server"
)

var (
	_ postrider.Publisher = (*Publisher)(nil)
	_ broker.OrderKeeper  = (*Publisher)(nil)
	_ broker.Inspector    = (*Publisher)(nil)
	_ broker.Namer        = (*Publisher)(nil)
	_ broker.Recaller     = (*Publisher)(nil)
)

// Publisher adds messages to streams.
type Publisher struct {
	cfg     Config
	coder   *codec.Codec
	routes  *routes
	senders chan *sender // idle senders
	recalls stock.Rounds
}

// NewPublisher returns a publisher that connects on first use. Errors concern the configuration.
func NewPublisher(cfg Config) (*Publisher, error) {
	options, coder, err := cfg.prepare()
	if err != nil {
		return nil, err
	}
	p := &Publisher{cfg: cfg, coder: coder, routes: newRoutes(options), senders: make(chan *sender, cfg.Connections)}
	for range cfg.Connections {
		p.senders <- &sender{cfg: &p.cfg, coder: coder, routes: p.routes, lines: make(map[string]*line)}
	}
	return p, nil
}

// Publish implements [postrider.Publisher].
func (p *Publisher) Publish(ctx context.Context, msgs []postrider.Message) []error {
	select {
	case s := <-p.senders:
		defer func() { p.senders <- s }()
		return s.publish(ctx, msgs)
	case <-ctx.Done():
		return slices.Repeat([]error{postrider.Unavailable(ctx.Err())}, len(msgs))
	}
}

// KeepsOrder returns true: messages that must stay in order are in one transaction, where they fail
// together, or in a later one.
func (p *Publisher) KeepsOrder() bool { return true }

// NameOf returns the stream that m is added to.
func (p *Publisher) NameOf(m *postrider.Message) string { return p.coder.Name(m) }

// Close closes all connections.
func (p *Publisher) Close() error {
	for range p.cfg.Connections {
		s := <-p.senders
		for _, line := range s.lines {
			line.close()
		}
		p.senders <- s
	}
	_ = p.routes.client.Close() // holds no messages
	return nil
}

// Inspect implements [broker.Inspector].
func (p *Publisher) Inspect(ctx context.Context, names []string) (broker.Inspection, error) {
	client := p.routes.client
	in, err := server.Inspect(ctx, client, p.cfg.WaitReplicas)
	for _, name := range names {
		kind, _ := client.Type(ctx, name).Result() // the user may lack the permission
		if kind != "" && kind != "none" && kind != "stream" {
			in.Warnings = append(in.Warnings, broker.Warning{
				Danger: fmt.Sprintf("The key %s holds a %s, not a stream: every message for it is refused.", name, kind),
				Remedy: "Rename the key or route the messages elsewhere.",
			})
		}
	}
	return in, err
}
