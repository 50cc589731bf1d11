package pulsar

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	apache "github.com/apache/pulsar-client-go/pulsar"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
)

func init() {
	broker.Register(broker.Driver{
		Name:      "pulsar",
		Schemes:   []string{"pulsar", "pulsar+ssl"},
		Example:   "pulsar://localhost:6650",
		Doc:       "Messages go to the Pulsar topic with their name, to the partition of their key.",
		Options:   broker.OptionsOf(Config{}),
		Publisher: func(s *broker.Settings) (postrider.Publisher, error) { return broker.From(s, NewPublisher) },
		Consumer:  func(s *broker.Settings) (postrider.Consumer, error) { return broker.From(s, NewConsumer) },
		Create:    create,
		Bare:      bare,
	})
}

// create makes a topic and a subscription, named after the group or else "postrider": without a
// subscription, the broker discards published messages and eventually the topic.
func create(_ context.Context, s *broker.Settings, name string) error {
	c, err := broker.From(s, func(cfg Config) (*Consumer, error) { //nolint:contextcheck // the client takes none
		cfg.Name, cfg.Group = name, cmp.Or(cfg.Group, "postrider")
		cfg.OperationTimeout = 30 * time.Second // create does not retry
		return NewConsumer(cfg)
	})
	if err != nil {
		return err
	}
	subscription, err := c.subscribe(func() {})
	if err == nil {
		subscription.Close()
	}
	return errors.Join(err, c.Close())
}

// bare sends a load with the client alone: one producer, batches, about 4,000 messages in flight.
func bare(ctx context.Context, s *broker.Settings, load broker.Load) error {
	p, err := broker.From(s, NewPublisher)
	if err != nil {
		return err
	}
	defer p.Close() //nolint:errcheck // each message was confirmed
	options := p.cfg.producerOptions()
	options.SendTimeout = 30 * time.Second
	if options.Topic, err = topicName(load.Name, p.cfg.Namespace); err != nil {
		return err
	}
	producer, err := p.client.CreateProducer(options)
	if err != nil {
		return prefix(err)
	}
	defer producer.Close()

	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	payload := make([]byte, load.Size)
	var left sync.WaitGroup
	answer := func(_ apache.MessageID, _ *apache.ProducerMessage, err error) {
		if err != nil {
			fail(err)
		}
		left.Done()
	}
	for i := 0; i < load.Messages && ctx.Err() == nil; i++ {
		left.Add(1)
		producer.SendAsync(ctx, &apache.ProducerMessage{Payload: payload, Key: strconv.Itoa(i % max(load.Keys, 1))}, answer)
	}
	if err := producer.FlushWithCtx(ctx); err != nil {
		fail(err)
		return context.Cause(ctx)
	}
	left.Wait()
	return context.Cause(ctx)
}
