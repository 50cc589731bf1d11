package brokers

import (
	"context"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/pulsar"
)

// Pulsar passes messages to handle until ctx ends.
func Pulsar(ctx context.Context, handle postrider.Handler) error {
	//docs:begin consume
	con, err := pulsar.NewConsumer(pulsar.Config{
		URL: "pulsar://localhost:6650", Name: "order", Group: "billing",
	})
	if err != nil {
		return err
	}
	defer con.Close()
	return con.Consume(ctx, handle)
	//docs:end
}
