package pubsub

import (
	"context"
	"strconv"
	"strings"

	google "cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
)

func init() {
	broker.Register(broker.Driver{
		Name:      "pubsub",
		Schemes:   []string{"pubsub"},
		Example:   "pubsub://my-project",
		Doc:       "Messages go to the Google Cloud Pub/Sub topic with their name, in order for each key.",
		Options:   broker.OptionsOf(Config{}),
		Publisher: func(s *broker.Settings) (postrider.Publisher, error) { return broker.From(s, NewPublisher) },
		Consumer:  func(s *broker.Settings) (postrider.Consumer, error) { return broker.From(s, NewConsumer) },
		Create:    create,
		Bare:      bare,
	})
}

// create makes a topic and a subscription with the same ID: without a subscription, the service
// discards published messages.
func create(ctx context.Context, s *broker.Settings, name string) error {
	p, err := broker.From(s, NewPublisher)
	if err != nil {
		return err
	}
	defer p.Close() //nolint:errcheck // returns none
	topic, err := p.cfg.path("topics", name)
	if err != nil {
		return err
	}
	conn, err := p.keeper.Get(ctx)
	if err != nil {
		return err
	}
	_, err = conn.TopicAdminClient.CreateTopic(ctx, &pubsubpb.Topic{Name: topic})
	if err == nil || status.Code(err) == codes.AlreadyExists {
		_, err = conn.SubscriptionAdminClient.CreateSubscription(ctx, &pubsubpb.Subscription{
			Name: strings.Replace(topic, "/topics/", "/subscriptions/", 1), Topic: topic, EnableMessageOrdering: !p.cfg.Unordered,
			AckDeadlineSeconds: seconds(p.cfg.AckDeadline), ExpirationPolicy: &pubsubpb.ExpirationPolicy{}, // never
		})
	}
	if status.Code(err) == codes.AlreadyExists {
		return nil
	}
	return prefix(err)
}

// bare sends a load with Google's own publisher, with its batches and retries and up to 4,000
// messages in flight.
func bare(ctx context.Context, s *broker.Settings, load broker.Load) error {
	p, err := broker.From(s, NewPublisher)
	if err != nil {
		return err
	}
	client, err := p.cfg.newClient(ctx)
	if err != nil {
		return prefix(err)
	}
	defer client.Close() //nolint:errcheck // each message was confirmed
	publisher := client.Publisher(load.Name)
	publisher.EnableMessageOrdering = !p.cfg.Unordered
	publisher.PublishSettings.FlowControlSettings = google.FlowControlSettings{
		MaxOutstandingMessages: 4000, LimitExceededBehavior: google.FlowControlBlock,
	}
	defer publisher.Stop()
	payload := make([]byte, load.Size)
	results := make([]*google.PublishResult, 0, load.Messages)
	for i := range load.Messages {
		m := &google.Message{Data: payload}
		if !p.cfg.Unordered {
			m.OrderingKey = strconv.Itoa(i % max(load.Keys, 1))
		}
		results = append(results, publisher.Publish(ctx, m))
	}
	for _, r := range results {
		if _, err := r.Get(ctx); err != nil {
			return prefix(err)
		}
	}
	return nil
}
