package broker

import (
	"context"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

type natsBroker struct {
	conn   *nats.Conn
	stream jetstream.JetStream
}

func openNATS(address string) (Broker, error) {
	conn, err := nats.Connect(address)
	if err != nil {
		return nil, err
	}
	stream, err := jetstream.New(conn)
	return &natsBroker{conn, stream}, err
}

func (n *natsBroker) Create(ctx context.Context, topic string) error {
	_, err := n.stream.CreateStream(ctx, jetstream.StreamConfig{Name: topic, Subjects: []string{topic}, Storage: jetstream.FileStorage})
	return err
}

func (n *natsBroker) Delete(ctx context.Context, topic string) error {
	return n.stream.DeleteStream(ctx, topic)
}

func (n *natsBroker) Receive(ctx context.Context, topic string, f func([]byte)) (func(), error) {
	consumer, err := n.stream.OrderedConsumer(ctx, topic, jetstream.OrderedConsumerConfig{})
	if err != nil {
		return nil, err
	}
	reading, err := consumer.Consume(func(m jetstream.Msg) { f(m.Data()) }, jetstream.PullMaxMessages(5000))
	if err != nil {
		return nil, err
	}
	return func() { reading.Stop(); <-reading.Closed() }, nil
}

func (n *natsBroker) Send(ctx context.Context, topic string, msgs ...Message) error {
	answers := make([]jetstream.PubAckFuture, len(msgs))
	for i, m := range msgs {
		answer, err := n.stream.PublishMsgAsync(&nats.Msg{Subject: topic, Data: m.Payload,
			Header: nats.Header{jetstream.MsgIDHeader: {m.ID}, "key": {m.Key}}})
		if err != nil {
			return err
		}
		answers[i] = answer
	}
	for _, answer := range answers {
		select {
		case <-answer.Ok():
		case err := <-answer.Err():
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (n *natsBroker) Close() { n.conn.Close() }
