package brokers

import (
	"context"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/pubsub"
)

// PubSub passes messages to handle until ctx ends.
func PubSub(ctx context.Context, handle postrider.Handler) error {
	//docs:begin consume
	con, err := pubsub.NewConsumer(pubsub.Config{
		URL: "pubsub://my-project", Name: "order-billing",
	})
	if err != nil {
		return err
	}
	defer con.Close()
	return con.Consume(ctx, handle)
	//docs:end
}
