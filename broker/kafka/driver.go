package kafka

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
)

func init() {
	broker.Register(broker.Driver{
		Name:      "kafka",
		Schemes:   []string{"kafka", "kafkas"},
		Example:   "kafka://localhost:9092",
		Doc:       "Messages go to Kafka topics.",
		Options:   broker.OptionsOf(Config{}),
		Publisher: func(s *broker.Settings) (postrider.Publisher, error) { return broker.From(s, NewPublisher) },
		Consumer:  func(s *broker.Settings) (postrider.Consumer, error) { return broker.From(s, NewConsumer) },
		Create:    create,
		Bare:      bare,
	})
}

// newAdmin returns a client for queries. The caller closes it.
func newAdmin(cfg Config) (*kadm.Client, error) {
	if _, err := cfg.prepare(); err != nil {
		return nil, err
	}
	client, err := cfg.client(cfg.dial, kgo.RequestRetries(3))
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	return kadm.NewClient(client), nil
}

// create makes a topic with three replicas and min.insync.replicas=2, or with as many replicas as
// the cluster has brokers.
func create(ctx context.Context, s *broker.Settings, name string) error {
	admin, err := broker.From(s, newAdmin)
	if err != nil {
		return err
	}
	defer admin.Close()
	brokers, err := admin.ListBrokers(ctx)
	if err != nil {
		return fmt.Errorf("kafka: %w", err)
	}
	replicas := int16(min(3, len(brokers)))
	configs := make(map[string]*string)
	if replicas == 3 {
		configs["min.insync.replicas"] = kadm.StringPtr("2")
	}
	_, err = admin.CreateTopic(ctx, int32(s.Int("partitions")), replicas, configs, name)
	if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
		return fmt.Errorf("kafka: create %.300q: %w", name, err)
	}
	return nil
}

// bare sends with one producer, as the client's documentation recommends: idempotent, acks=all, a
// limited number of records in flight.
func bare(ctx context.Context, s *broker.Settings, load broker.Load) error {
	client, err := broker.From(s, func(cfg Config) (*kgo.Client, error) {
		if _, err := cfg.prepare(); err != nil {
			return nil, err
		}
		return cfg.client(cfg.dial, kgo.DefaultProduceTopic(load.Name), kgo.MaxBufferedRecords(4000),
			kgo.ProducerLinger(2*time.Millisecond), kgo.ProducerBatchMaxBytes(int32(cfg.MaxBytes)),
			kgo.ProducerBatchCompression(compressions[cfg.Compression]))
	})
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	keys := make([][]byte, load.Keys)
	for i := range keys {
		keys[i] = []byte(strconv.Itoa(i))
	}
	payload := make([]byte, load.Size)
	for n := 0; n < load.Messages && ctx.Err() == nil; n++ {
		record := &kgo.Record{Value: payload}
		if load.Keys > 0 {
			record.Key = keys[n%load.Keys]
		}
		client.Produce(ctx, record, func(_ *kgo.Record, err error) {
			if err != nil {
				cancel(err)
			}
		})
	}
	_ = client.Flush(ctx)
	return context.Cause(ctx)
}
