package rabbitmq

import (
	"context"
	"fmt"
	"slices"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/codec"
	"github.com/postrider/postrider/broker/session"
)

var (
	_ broker.OrderKeeper = (*Publisher)(nil)
	_ broker.Inspector   = (*Publisher)(nil)
	_ broker.Namer       = (*Publisher)(nil)
)

// Publisher sends messages to RabbitMQ. It connects on first use and reconnects after each outage.
type Publisher struct {
	cfg    Config
	coder  *codec.Codec
	keeper *session.Keeper[*link]
}

// NewPublisher returns a publisher. It does not connect. Errors concern the configuration.
func NewPublisher(c Config) (*Publisher, error) {
	c, coder, err := c.complete()
	if err != nil {
		return nil, err
	}
	p := &Publisher{cfg: c, coder: coder}
	p.keeper = session.New("rabbitmq", c.Logger, p.open)
	return p, nil
}

// KeepsOrder returns Config.Pipeline.
func (p *Publisher) KeepsOrder() bool { return p.cfg.Pipeline }

// NameOf returns the routing key, which is a queue's name unless there is an exchange.
func (p *Publisher) NameOf(m *postrider.Message) string {
	if p.cfg.Exchange != "" && m.RoutingKey != "" {
		return m.RoutingKey
	}
	return p.coder.Name(m)
}

// Close closes the connection. It does not wait for a server that does not answer.
func (p *Publisher) Close() error {
	p.keeper.Close()
	return nil
}

// Publish implements [postrider.Publisher]. Once a message has failed, no later message of its key
// is sent.
func (p *Publisher) Publish(ctx context.Context, msgs []postrider.Message) []error {
	if len(msgs) == 0 {
		return nil
	}
	c := &call{msgs: msgs, errs: slices.Repeat([]error{errUnsent}, len(msgs)), routes: make(map[string]string, len(msgs)),
		forbidden: make(map[string]error)}
	l, err := p.keeper.Get(ctx)
	if err == nil {
		defer l.guard(ctx)()
		err = c.deliver(ctx, l)
	}
	return c.result(err)
}

// Inspect implements [broker.Inspector]. AMQP only reports whether the exchange and the queues
// exist.
func (p *Publisher) Inspect(ctx context.Context, names []string) (broker.Inspection, error) {
	found := broker.Inspection{
		Confirmed: "Every queue that the message was routed to has it: a classic queue on the disk of its node, " +
			"a quorum queue on the disks of most of its nodes, a stream with most of its replicas; an unroutable message is refused.",
	}
	l, err := p.keeper.Get(ctx)
	if err != nil {
		return found, err
	}
	defer l.guard(ctx)()
	found.Settings = []broker.Setting{
		{Name: "server", Value: fmt.Sprint(l.Properties["product"], " ", l.Properties["version"])},
		{Name: "durability, type and limits of queues", Value: "unknown: AMQP does not tell; see rabbitmqctl list_queues " +
			"name type durable auto_delete arguments effective_policy_definition"},
	}
	check, remedy := l.checkQueue, "create the queue: rabbitmqadmin declare queue name=%s queue_type=quorum durable=true; or start its node again"
	if p.cfg.Exchange != "" {
		names, remedy = []string{p.cfg.Exchange}, "create the exchange: rabbitmqadmin declare exchange name=%s type=topic; or correct the option exchange"
		check = func(name string) error {
			return l.probe(func(ch *amqp.Channel) error {
				return ch.ExchangeDeclarePassive(name, amqp.ExchangeTopic, true, false, false, false, nil)
			})
		}
	}
	for _, name := range names {
		err := checkShort("the name", name) // the client would close the connection, and with it lose messages of other calls
		if err == nil {
			err = check(name)
		} else {
			found.Warnings = append(found.Warnings, broker.Warning{Danger: err.Error(), Remedy: "Route the messages to a shorter name."})
			continue
		}
		if err != nil && exception(err) == nil {
			return found, err
		}
		if err != nil {
			danger := name + " takes no messages: " + err.Error()
			found.Warnings = append(found.Warnings, broker.Warning{Danger: danger, Remedy: fmt.Sprintf(remedy, name)})
		}
	}
	return found, nil
}
