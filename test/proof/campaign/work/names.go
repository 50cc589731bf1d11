package work

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/postrider/postrider/test/proof/campaign/world"
)

// Names at brokers. Other topics and streams are named like their destination.
const (
	Stream   = "CAMPAIGN"          // of NATS
	Exchange = "campaign"          // of RabbitMQ
	Queue    = "campaign"          // for consumers
	Receipts = "campaign.receipts" // the same, for the collector

	nowhere = ".nowhere" // appended to the name of a destination: a name that does not exist
)

const partitions = 8

// headroom is more than the headers of any message; a limit of NATS includes them.
const headroom = 16 << 10

// tooLarge returns the size of a message that a destination must reject, or 0 if it accepts all.
func tooLarge(destination string) int {
	switch destination {
	case world.Redis:
		return 0
	case world.Kafka:
		return 1100 << 10 // its limit is on batches, and that of the publisher
	default:
		return world.MaxPayload + headroom
	}
}

// Prepare creates what the messages of a plan need at brokers.
func Prepare(ctx context.Context, plan Plan) error {
	steps := map[string]func(ctx context.Context, address string) error{
		world.Kafka: prepareKafka, world.NATS: prepareNATS, world.RabbitMQ: prepareRabbitMQ, world.Redis: prepareRedis,
	}
	for destination, address := range plan.Brokers {
		if err := steps[destination](ctx, address); err != nil {
			return fmt.Errorf("preparing %s: %w", destination, err)
		}
	}
	return nil
}

// KafkaClient opens a client for a broker's URL.
func KafkaClient(address string, options ...kgo.Opt) (*kgo.Client, error) {
	_, hosts, _ := strings.Cut(address, "://")
	return kgo.NewClient(append(options, kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.SeedBrokers(strings.Split(hosts, ",")...), kgo.DisableClientMetrics())...)
}

func prepareKafka(ctx context.Context, address string) error {
	client, err := KafkaClient(address)
	if err != nil {
		return err
	}
	defer client.Close()
	clock := "LogAppendTime" // the broker's clock, so that it records when a message arrived
	configs := map[string]*string{"message.timestamp.type": &clock}
	_, err = kadm.NewClient(client).CreateTopic(ctx, partitions, 1, configs, world.Kafka)
	return err
}

// prepareNATS creates a stream with a short deduplication window, so that duplicates are not
// hidden.
func prepareNATS(ctx context.Context, address string) error {
	conn, err := nats.Connect(address)
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	for { // a new cluster has no leader yet
		_, err = js.CreateStream(ctx, jetstream.StreamConfig{
			Name: Stream, Subjects: []string{world.NATS}, Storage: jetstream.FileStorage, Replicas: 3,
			MaxMsgSize: world.MaxPayload + headroom, Duplicates: 2 * time.Minute, // the default; relays need at least 30 s to promise that nothing comes twice
		})
		if err == nil || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(time.Second):
		}
	}
}

// prepareRabbitMQ creates two queues that both receive every message: one for consumers, with a
// single active consumer so that order is kept, and one for the collector. A stream queue would
// keep and number its entries; but after a server restart there is a moment in which messages are
// confirmed although such a queue has not received them.
func prepareRabbitMQ(_ context.Context, address string) error {
	conn, err := amqp.Dial(address)
	if err != nil {
		return err
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	if err := ch.ExchangeDeclare(Exchange, amqp.ExchangeDirect, true, false, false, false, nil); err != nil {
		return err
	}
	for queue, arguments := range map[string]amqp.Table{
		Queue:    {amqp.QueueTypeArg: amqp.QueueTypeQuorum, amqp.SingleActiveConsumerArg: true},
		Receipts: {amqp.QueueTypeArg: amqp.QueueTypeQuorum},
	} {
		if _, err := ch.QueueDeclare(queue, true, false, false, false, arguments); err != nil {
			return err
		}
		if err := ch.QueueBind(queue, world.RabbitMQ, Exchange, false, nil); err != nil {
			return err
		}
	}
	return nil
}

func prepareRedis(ctx context.Context, address string) error {
	options, err := redis.ParseURL(address)
	if err != nil {
		return err
	}
	client := redis.NewClient(options)
	defer client.Close()
	return client.Set(ctx, world.Redis+nowhere, "no stream", 0).Err()
}
