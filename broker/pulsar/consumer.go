package pulsar

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apache "github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/backoff"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/codec"
	"github.com/postrider/postrider/broker/intake"
	"github.com/postrider/postrider/retry"
)

var subscriptionTypes = map[string]apache.SubscriptionType{
	"failover": apache.Failover, "exclusive": apache.Exclusive, "key_shared": apache.KeyShared, "shared": apache.Shared,
}

// Consumer receives the messages of a topic through a subscription.
type Consumer struct {
	intake.Counters

	cfg    Config
	topic  string
	coder  *codec.Codec
	dead   intake.DeadLetters
	client apache.Client
	run    sync.WaitGroup
}

// NewConsumer returns a consumer. It does not connect. Errors concern the configuration.
func NewConsumer(cfg Config) (*Consumer, error) {
	coder, err := cfg.prepare(true)
	topic, topicErr := topicName(cfg.Name, cfg.Namespace)
	if err = errors.Join(err, topicErr); err != nil {
		return nil, err
	}
	dead, err := intake.OpenDeadLetters(cfg.DeadLetter, cfg.Name, cfg, NewPublisher)
	if err != nil {
		return nil, prefix(err)
	}
	client, err := cfg.open()
	if err != nil {
		return nil, err
	}
	return &Consumer{cfg: cfg, topic: topic, coder: coder, dead: dead, client: client}, nil
}

// Consume hands messages to handle until ctx ends. If it cannot subscribe, it logs the reason and
// retries.
func (c *Consumer) Consume(ctx context.Context, handle postrider.Handler) error {
	in := intake.Open(ctx, handle, intake.Config{
		Limit: c.cfg.InFlight, Waiting: c.cfg.MaxWaiting, Retry: retry.Policy{Attempts: c.cfg.Attempts}, DeadLetters: c.dead,
		Counters: &c.Counters, Logger: c.cfg.Logger,
	})
	ended := make(chan struct{})
	c.run.Go(func() {
		defer close(ended)
		intake.Persist(ctx, c.cfg.Logger, c.topic, func(ctx context.Context, working func()) error {
			return c.receive(ctx, in, working)
		})
	})
	in.Wait()
	select {
	case <-ended:
	case <-time.After(closeGrace): // an attempt to subscribe cannot be interrupted: Close waits for it
	}
	return nil
}

// receive hands messages over until the connection is lost or ctx ends.
func (c *Consumer) receive(ctx context.Context, in *intake.Intake, working func()) error {
	connected, lost := context.WithCancel(ctx)
	defer lost()
	subscription, err := c.subscribe(lost)
	if err != nil {
		return err
	}
	defer subscription.Close() // messages that handlers finish after an outage are redelivered
	working()
	for {
		m, err := subscription.Receive(connected)
		//nolint:contextcheck // the intake has its own
		if err != nil || !in.Accept(intake.Delivery{Message: c.decode(m), Done: func() { _ = subscription.Ack(m) }}) {
			break
		}
	}
	if ctx.Err() != nil {
		in.Wait() // handlers may acknowledge until they have returned
	}
	return errLost
}

// subscribe opens a consumer of the client that calls lost when its connection is lost. Automatic
// reconnection of the client is disabled: if it were closed during a reconnect, it would continue
// and take messages that are never handled.
func (c *Consumer) subscribe(lost func()) (apache.Consumer, error) {
	subscription, err := c.client.Subscribe(apache.ConsumerOptions{
		Topic:                          c.topic,
		SubscriptionName:               c.cfg.Group,
		Type:                           subscriptionTypes[c.cfg.SubscriptionType],
		SubscriptionInitialPosition:    apache.SubscriptionPositionEarliest,
		ReceiverQueueSize:              c.cfg.InFlight,
		MessageChannel:                 make(chan apache.ConsumerMessage),
		EnableBatchIndexAcknowledgment: true,
		MaxReconnectToBroker:           new(uint),
		BackOffPolicyFunc: func() backoff.Policy {
			lost()
			return backoff.NewDefaultBackoff()
		},
	})
	return subscription, prefix(err)
}

// placeOf returns a message's place. Messages of a batch differ only in the index, which
// MessageID.String omits.
func placeOf(id apache.MessageID) string {
	return fmt.Sprintf("%d/%d/%d/%d", id.PartitionIdx(), id.LedgerID(), id.EntryID(), id.BatchIdx())
}

// decode reads a message. If it claims to be a CloudEvent but is invalid, it is handed over
// undecoded, with its properties as headers.
func (c *Consumer) decode(received apache.Message) postrider.Message {
	properties := received.Properties()
	p := codec.Packet{Name: c.cfg.Name, Key: received.Key(), Body: received.Payload(), ContentType: properties[contentType],
		Place: placeOf(received.ID())}
	for name, value := range properties {
		if name != contentType {
			p.Headers = append(p.Headers, codec.Header{Name: name, Value: value})
		}
	}
	m, err := c.coder.Decode(&p)
	if err != nil {
		c.cfg.Logger.Error("pulsar: message cannot be decoded, handing it over undecoded", "topic", c.topic,
			"message", received.ID().String(), "err", err)
		m.OccurredAt = received.PublishTime()
	}
	return m
}

// Close waits for goroutines that Consume has left running, and closes the connections.
func (c *Consumer) Close() error {
	c.run.Wait()
	c.client.Close()
	return c.dead.Close()
}
