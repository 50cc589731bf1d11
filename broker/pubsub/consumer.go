package pubsub

import (
	"context"
	"errors"
	"io"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/codec"
	"github.com/postrider/postrider/broker/intake"
	"github.com/postrider/postrider/retry"
)

const (
	maxOutstanding = 64 << 20         // bytes that the service sends ahead
	pingEvery      = 10 * time.Second // prevents intermediaries from closing an idle stream
	closeGrace     = 2 * time.Second  // how long the service may take to end a stream when Consume ends
)

// Consumer receives the messages of a subscription.
//
// It uses the StreamingPull API directly. Google's own subscriber delays acknowledgements by 100
// ms, and at its end waits for messages that are no longer handled.
type Consumer struct {
	intake.Counters

	cfg          Config
	subscription string
	coder        *codec.Codec
	dead         intake.DeadLetters
	keeper       *keeper
}

// NewConsumer returns a consumer. It does not connect. Errors concern the configuration.
func NewConsumer(cfg Config) (*Consumer, error) {
	coder, err := cfg.prepare()
	subscription, nameErr := cfg.path("subscriptions", cfg.Name)
	if err = errors.Join(err, nameErr); err != nil {
		return nil, err
	}
	dead, err := intake.OpenDeadLetters(cfg.DeadLetter, cfg.Name, cfg, NewPublisher)
	return &Consumer{cfg: cfg, subscription: subscription, coder: coder, dead: dead, keeper: cfg.newKeeper()}, prefix(err)
}

// Consume hands messages to handle until ctx ends. If it cannot receive, it logs the reason and
// retries.
func (c *Consumer) Consume(ctx context.Context, handle postrider.Handler) error {
	in := intake.Open(ctx, handle, intake.Config{
		Limit: c.cfg.InFlight, Waiting: c.cfg.MaxWaiting, Retry: retry.Policy{Attempts: c.cfg.Attempts}, DeadLetters: c.dead,
		Counters: &c.Counters, Logger: c.cfg.Logger,
	})
	l := c.newLeases()
	// The service treats streams with one client ID as one consumer: it keeps its keys when it
	// opens another stream.
	id := postrider.NewID().String()
	intake.Persist(ctx, c.cfg.Logger, c.subscription, func(ctx context.Context, working func()) error {
		for {
			began := time.Now()
			err := c.receive(ctx, id, in, l, working)
			// The service ends every stream after some time. That is not an outage and is not
			// logged.
			routine := errors.Is(err, io.EOF) || status.Code(err) == codes.Unavailable
			if ctx.Err() != nil || !routine || time.Since(began) < pingEvery {
				return receiveError(c.subscription, err)
			}
		}
	})
	in.Wait()
	l.close() //nolint:contextcheck // ctx has ended, but the service must be informed
	return nil
}

// receive hands messages over until the stream or ctx ends. Their leases outlive the stream.
func (c *Consumer) receive(ctx context.Context, id string, in *intake.Intake, l *leases, working func()) error {
	conn, err := c.keeper.Get(ctx)
	if err != nil {
		return err
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	stream, err := conn.SubscriptionAdminClient.StreamingPull(life)
	if err != nil {
		return err
	}
	most := c.cfg.InFlight + c.cfg.MaxWaiting
	_ = stream.Send(&pubsubpb.StreamingPullRequest{ // Recv returns any error
		Subscription: c.subscription, ClientId: id, StreamAckDeadlineSeconds: seconds(c.cfg.AckDeadline),
		MaxOutstandingMessages: int64(most), MaxOutstandingBytes: maxOutstanding,
	})
	// Read messages as they arrive, so that their deadlines are extended even while there is no
	// room for them.
	received := make(chan *pubsubpb.ReceivedMessage, most)
	var lost error
	go func() {
		defer close(received)
		for lost == nil {
			var answer *pubsubpb.StreamingPullResponse
			answer, lost = stream.Recv()
			for _, m := range answer.GetReceivedMessages() {
				l.hold(m.AckId)
				received <- m
			}
		}
	}()
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	for {
		select {
		case m, ok := <-received:
			if !ok {
				return lost
			}
			working()
			// If there is no room before ctx ends, the message stays held and is given back at the
			// end.
			in.Accept(intake.Delivery{Message: c.decode(m.Message), Done: func() { l.done(m.AckId) }}) //nolint:contextcheck // the intake has its own
		case <-ping.C:
			working() // the service sends nothing until there is a message
			_ = stream.Send(&pubsubpb.StreamingPullRequest{})
		case <-ctx.Done():
			_ = stream.CloseSend() // messages in flight still arrive and are given back
			defer time.AfterFunc(closeGrace, end).Stop()
			for range received {
			}
			return ctx.Err()
		}
	}
}

// decode reads a message. If it claims to be a CloudEvent but is invalid, it is handed over
// undecoded, with its attributes as headers.
func (c *Consumer) decode(received *pubsubpb.PubsubMessage) postrider.Message {
	p := codec.Packet{Name: c.cfg.Name, Key: received.GetOrderingKey(), Body: received.GetData(),
		ContentType: received.GetAttributes()[contentType], Place: received.GetMessageId()}
	for name, value := range received.GetAttributes() {
		if name != contentType {
			p.Headers = append(p.Headers, codec.Header{Name: name, Value: value})
		}
	}
	m, err := c.coder.Decode(&p)
	if err != nil {
		c.cfg.Logger.Error("pubsub: message cannot be decoded, handing it over undecoded", "subscription", c.subscription,
			"message", received.GetMessageId(), "err", err)
		m.OccurredAt = received.GetPublishTime().AsTime()
	}
	return m
}

// Close closes the connections. It may be called twice.
func (c *Consumer) Close() error {
	c.keeper.Close()
	return c.dead.Close()
}
