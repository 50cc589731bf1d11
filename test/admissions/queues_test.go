package admissions

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/redis/go-redis/v9"

	"github.com/postrider/postrider/examples/admissions/demo/stage"
)

// prepareQueues removes what other tests left in the queue, and what this one leaves when it ends.
func prepareQueues(t *testing.T, queue string, s stage.Settings) {
	t.Helper()
	var remove func(context.Context) error
	switch queue {
	case "rabbitmq":
		remove = func(context.Context) error { return removeRabbitMQ(s) }
	case "nats":
		remove = func(ctx context.Context) error { return removeNATS(ctx, s) }
	case "asynq":
		remove = func(ctx context.Context) error { return removeRedis(ctx, s) }
		after(t, remove)
	default:
		t.Fatalf("queue %s is unknown", queue)
	}
	t.Cleanup(func() { after(t, remove) })
}

var jobs = []string{"verify_document", "create_payment", "send_email"}

func removeRabbitMQ(s stage.Settings) error {
	conn, err := amqp.Dial(s.Queue)
	if err != nil {
		return err
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	for _, job := range jobs {
		if _, err := ch.QueueDelete(s.Prefix+job, false, false, false); err != nil {
			return err
		}
	}
	return nil
}

func removeNATS(ctx context.Context, s stage.Settings) error {
	conn, err := nats.Connect(s.Queue)
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	for _, job := range jobs {
		if err := js.DeleteStream(ctx, s.Prefix+job); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return err
		}
	}
	return nil
}

func removeRedis(ctx context.Context, s stage.Settings) error {
	options, err := redis.ParseURL("redis" + strings.TrimPrefix(s.Queue, "asynq"))
	if err != nil {
		return err
	}
	client := redis.NewClient(options)
	defer client.Close()
	return client.FlushDB(ctx).Err()
}
