package rabbitmq

import (
	"context"
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/codec"
	"github.com/postrider/postrider/broker/intake"
	"github.com/postrider/postrider/retry"
)

// Consumer receives from a queue. Consumers of one queue share its messages.
//
// A message that claims to be a CloudEvent but is invalid is handed over undecoded, with the
// queue's name as its type, and an error is logged. Rejecting it would lose it unless the queue has
// a dead-letter exchange.
type Consumer struct {
	intake.Counters

	cfg   Config
	coder *codec.Codec
	dead  intake.DeadLetters
}

// NewConsumer returns a consumer of the queue Config.Name. It does not connect. Errors concern the
// configuration.
func NewConsumer(c Config) (*Consumer, error) {
	c, coder, err := c.complete()
	if c.Name == "" {
		err = errors.Join(err, errors.New("rabbitmq: Name is empty: which queue?"))
	}
	if err != nil {
		return nil, err
	}
	dead, err := intake.OpenDeadLetters(c.DeadLetter, c.Name, c, NewPublisher)
	if err != nil {
		return nil, fmt.Errorf("rabbitmq: %w", err)
	}
	return &Consumer{cfg: c, coder: coder, dead: dead}, nil
}

// errStream refuses streams: over AMQP the server does not store a consumer's offset in a stream,
// so a restart would lose messages.
var errStream = errors.New("is a stream, whose offsets AMQP does not keep: consume it with a client of the stream protocol, or let the relay send to a queue as well")

// Consume implements [postrider.Consumer]. It waits for a queue that does not exist.
func (c *Consumer) Consume(ctx context.Context, handle postrider.Handler) (fatal error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	intake.Persist(ctx, c.cfg.Logger, "queue "+c.cfg.Name, func(ctx context.Context, working func()) error {
		err := c.receive(ctx, handle, working)
		if errors.Is(err, errStream) {
			fatal = fmt.Errorf("rabbitmq: %s %w", c.cfg.Name, err)
			cancel()
		}
		return err
	})
	return fatal
}

// receive returns when the connection is lost or the context ends. The server then redelivers
// unacknowledged messages, so that handlers are not retried after a lost connection.
func (c *Consumer) receive(ctx context.Context, handle postrider.Handler, working func()) error {
	conn, err := c.cfg.connect(ctx, "postrider consumer of "+c.cfg.Name)
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, conn.hangUp)
	var deliveries <-chan amqp.Delivery
	ch, err := conn.Channel()
	if err == nil {
		err = ch.Qos(c.cfg.InFlight+c.cfg.MaxWaiting, 0, false) // waiting messages are unacknowledged and must not stop further deliveries
	}
	if err == nil {
		deliveries, err = ch.Consume(c.cfg.Name, "", false, false, false, false, nil)
	}
	stop()
	if err != nil {
		return err
	}
	working()
	ctx, cancel := context.WithCancel(ctx)
	in := intake.Open(ctx, handle, intake.Config{
		Limit: c.cfg.InFlight, Waiting: c.cfg.MaxWaiting, Retry: retry.Policy{Attempts: c.cfg.Attempts}, DeadLetters: c.dead,
		Counters: &c.Counters, Logger: c.cfg.Logger,
	})
	defer in.Wait()
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			return nil
		case d, ok := <-deliveries:
			if !ok {
				return errors.New("rabbitmq: the server has ended the subscription, or the connection is lost")
			}
			if _, ok := d.Headers[streamOffset]; ok {
				return errStream
			}
			m, err := decode(c.coder, c.cfg.Name, &d)
			if err != nil {
				c.cfg.Logger.Error("rabbitmq: a message is handed over undecoded", "id", d.MessageId, "err", err)
			}
			in.Accept(intake.Delivery{Message: m, Done: func() { //nolint:contextcheck // the intake has its own
				_ = ch.Ack(d.DeliveryTag, false) // fails only if its channel is closed: the message is then redelivered
			}})
		}
	}
}

// Close closes the dead-letter publisher. Other connections end with Consume.
func (c *Consumer) Close() error { return c.dead.Close() }
