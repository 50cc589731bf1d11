package peer

import (
	"context"
	"strings"
	"time"

	mill "github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-amqp/v3/pkg/amqp"
	"github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill-nats/v2/pkg/nats"
	"github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/components/forwarder"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// watermill is its SQL Pub/Sub with the Forwarder component, which is its documented outbox. With
// queue it uses the schema that deletes rows, without consumer groups.
type watermill struct {
	inside
	queue bool
}

const (
	millTopic = "outbox"
	millPoll  = time.Second
)

func (w watermill) Name() string {
	if w.queue {
		return "watermill-queue"
	}
	return "watermill"
}

// Variant reports whether a peer is a second setup of another peer, which is measured on only one
// broker.
func Variant(p Peer) bool {
	w, ok := p.(watermill)
	return ok && w.queue
}

func (watermill) Version(Programs) (string, error) {
	core, err := module("github.com/ThreeDotsLabs/watermill")
	if err != nil {
		return "", err
	}
	schema, err := module("github.com/ThreeDotsLabs/watermill-sql/v4")
	return core + ", watermill-sql " + schema, err
}

func (w watermill) Settings(j Job) []Setting {
	schema := Setting{Name: "schema", Value: "DefaultPostgreSQLSchema", Default: "DefaultPostgreSQLSchema"}
	if w.queue {
		schema.Value = "PostgreSQLQueueSchema, DeleteOnAck"
	}
	return []Setting{
		schema,
		{Name: "SubscribeBatchSize", Value: "100", Default: "100"},
		j.poll("PollInterval", millPoll),
		{Name: "Kafka", Value: "partitioning marshaler; the leader's confirmation", Default: "no key; the same"},
		{Name: "RabbitMQ", Value: "ConfirmDelivery, ChannelPoolSize 1", Default: "off, 0"},
	}
}

func (w watermill) schema() sql.SchemaAdapter {
	if w.queue {
		return sql.PostgreSQLQueueSchema{}
	}
	return sql.DefaultPostgreSQLSchema{}
}

func (w watermill) subscriber(db *pgxpool.Pool, j Job, logger mill.LoggerAdapter) (*sql.Subscriber, error) {
	config := sql.SubscriberConfig{
		SchemaAdapter:  w.schema(),
		OffsetsAdapter: sql.DefaultPostgreSQLOffsetsAdapter{},
		PollInterval:   j.interval(millPoll),
	}
	if w.queue {
		config.OffsetsAdapter = sql.PostgreSQLQueueOffsetsAdapter{DeleteOnAck: true}
	}
	return sql.NewSubscriber(sql.BeginnerFromPgx(db), config, logger)
}

func (w watermill) Setup(ctx context.Context, db *pgxpool.Pool, j Job) (Enqueue, error) {
	subscriber, err := w.subscriber(db, j, nil)
	if err != nil {
		return nil, err
	}
	if err := subscriber.SubscribeInitialize(millTopic); err != nil {
		return nil, err
	}
	return func(ctx context.Context, tx pgx.Tx, msgs ...Message) error {
		publisher, err := sql.NewPublisher(sql.TxFromPgx(tx), sql.PublisherConfig{SchemaAdapter: w.schema()}, nil)
		if err != nil {
			return err
		}
		enclosed := make([]*message.Message, len(msgs))
		for i, m := range msgs {
			enclosed[i] = message.NewMessageWithContext(ctx, m.ID.String(), m.Payload)
			enclosed[i].Metadata.Set("key", m.Key)
		}
		return forwarder.NewPublisher(publisher, forwarder.PublisherConfig{ForwarderTopic: millTopic}).Publish(j.Topic, enclosed...)
	}, nil
}

func (w watermill) run(ctx context.Context, db *pgxpool.Pool, j Job) error {
	logger := mill.NewStdLogger(false, false)
	subscriber, err := w.subscriber(db, j, logger)
	if err != nil {
		return err
	}
	publisher, err := w.publisher(j, logger)
	if err != nil {
		return err
	}
	f, err := forwarder.NewForwarder(subscriber, publisher, logger, forwarder.Config{ForwarderTopic: millTopic, CloseTimeout: 5 * time.Second})
	if err != nil {
		return err
	}
	return f.Run(ctx)
}

func (watermill) publisher(j Job, logger mill.LoggerAdapter) (message.Publisher, error) {
	switch j.Broker {
	case "kafka":
		return kafka.NewPublisher(kafka.PublisherConfig{
			Brokers: strings.Split(j.Address, ","),
			Marshaler: kafka.NewWithPartitioningMarshaler(func(_ string, m *message.Message) (string, error) {
				return m.Metadata.Get("key"), nil
			}),
		}, logger)
	case "nats":
		return nats.NewPublisher(nats.PublisherConfig{URL: j.Address, JetStream: nats.JetStreamConfig{TrackMsgId: true}}, logger)
	}
	config := amqp.NewDurableQueueConfig(j.Address)
	config.Publish.ConfirmDelivery, config.Publish.ChannelPoolSize = true, 1
	return amqp.NewPublisher(config, logger)
}
