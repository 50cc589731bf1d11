package brokers

import (
	"context"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/kafka"
)

// Kafka passes messages to handle until ctx ends.
func Kafka(ctx context.Context, handle postrider.Handler) error {
	//docs:begin consume
	con, err := kafka.NewConsumer(kafka.Config{
		URL:   "kafka://localhost:9092",
		Name:  "order",
		Group: "billing",
	})
	if err != nil {
		return err
	}
	return con.Consume(ctx, handle)
	//docs:end
}
