package brokers

import (
	"context"
	"net/http"
	"testing"

	"github.com/postrider/postrider"
)

// TestConsumers checks that the settings on the pages are accepted. No server runs, so the
// consumers keep waiting for one.
func TestConsumers(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	handle := func(context.Context, postrider.Message) error { return nil }
	for name, consume := range map[string]func(context.Context, postrider.Handler) error{
		"asynq": Asynq, "kafka": Kafka, "nats": NATS, "pubsub": PubSub, "pulsar": Pulsar, "redis": Redis, "sqs": SQS,
		"rabbitmq": func(ctx context.Context, handle postrider.Handler) error {
			return RabbitMQ(ctx, "amqp://localhost/", handle)
		},
	} {
		if err := consume(ended, handle); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := Webhook(http.NewServeMux(), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"); err != nil {
		t.Error(err)
	}
	if Worker() == nil {
		t.Error("no worker")
	}
}
