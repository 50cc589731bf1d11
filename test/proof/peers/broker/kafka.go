package broker

import (
	"context"
	"errors"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// partitions is the number of partitions of every topic, as many as Postrider's log has shards.
const partitions = 8

type kafka struct {
	servers []string
	client  *kgo.Client
}

func openKafka(address string) (Broker, error) {
	servers := strings.Split(address, ",")
	client, err := kgo.NewClient(kgo.SeedBrokers(servers...))
	return &kafka{servers, client}, err
}

func (k *kafka) Create(ctx context.Context, topic string) error {
	_, err := kadm.NewClient(k.client).CreateTopic(ctx, partitions, 1, nil, topic)
	return err
}

func (k *kafka) Delete(ctx context.Context, topic string) error {
	_, err := kadm.NewClient(k.client).DeleteTopic(ctx, topic)
	return err
}

func (k *kafka) Receive(ctx context.Context, topic string, f func([]byte)) (func(), error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(k.servers...), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return nil, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			fetches := client.PollFetches(ctx)
			if fetches.IsClientClosed() || ctx.Err() != nil {
				return
			}
			fetches.EachRecord(func(r *kgo.Record) { f(r.Value) })
		}
	}()
	return func() { client.Close(); <-done }, nil
}

func (k *kafka) Send(ctx context.Context, topic string, msgs ...Message) error {
	records := make([]*kgo.Record, len(msgs))
	for i, m := range msgs {
		records[i] = &kgo.Record{Topic: topic, Key: []byte(m.Key), Value: m.Payload,
			Headers: []kgo.RecordHeader{{Key: "id", Value: []byte(m.ID)}}}
	}
	var errs []error
	for _, result := range k.client.ProduceSync(ctx, records...) {
		errs = append(errs, result.Err)
	}
	return errors.Join(errs...)
}

func (k *kafka) Close() { k.client.Close() }
