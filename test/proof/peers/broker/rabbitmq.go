package broker

import (
	"context"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

type rabbitMQ struct {
	conn    *amqp.Connection
	channel *amqp.Channel // in confirm mode
}

func openRabbitMQ(address string) (Broker, error) {
	conn, err := amqp.Dial(address)
	if err != nil {
		return nil, err
	}
	channel, err := conn.Channel()
	if err == nil {
		err = channel.Confirm(false)
	}
	return &rabbitMQ{conn, channel}, err
}

// Create creates a durable queue, and an exchange of the same name for peers that cannot publish to
// a queue directly.
func (r *rabbitMQ) Create(_ context.Context, topic string) error {
	if _, err := r.channel.QueueDeclare(topic, true, false, false, false, nil); err != nil {
		return err
	}
	if err := r.channel.ExchangeDeclare(topic, "fanout", true, false, false, false, nil); err != nil {
		return err
	}
	return r.channel.QueueBind(topic, "", topic, false, nil)
}

func (r *rabbitMQ) Delete(_ context.Context, topic string) error {
	if err := r.channel.ExchangeDelete(topic, false, false); err != nil {
		return err
	}
	_, err := r.channel.QueueDelete(topic, false, false, false)
	return err
}

func (r *rabbitMQ) Receive(_ context.Context, topic string, f func([]byte)) (func(), error) {
	channel, err := r.conn.Channel()
	if err != nil {
		return nil, err
	}
	deliveries, err := channel.Consume(topic, "", true, true, false, false, nil)
	if err != nil {
		return nil, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for d := range deliveries {
			f(d.Body)
		}
	}()
	return func() { _ = channel.Close(); <-done }, nil
}

func (r *rabbitMQ) Send(ctx context.Context, topic string, msgs ...Message) error {
	confirmations := make([]*amqp.DeferredConfirmation, len(msgs))
	for i, m := range msgs {
		confirmation, err := r.channel.PublishWithDeferredConfirmWithContext(ctx, "", topic, true, false, amqp.Publishing{
			MessageId: m.ID, Headers: amqp.Table{"key": m.Key}, DeliveryMode: amqp.Persistent, Body: m.Payload,
		})
		if err != nil {
			return err
		}
		confirmations[i] = confirmation
	}
	for _, c := range confirmations {
		confirmed, err := c.WaitContext(ctx)
		if err != nil {
			return err
		}
		if !confirmed {
			return fmt.Errorf("broker: RabbitMQ has refused a message")
		}
	}
	return nil
}

func (r *rabbitMQ) Close() { _ = r.conn.Close() }
