package brokers

import (
	"context"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/rabbitmq"
)

// RabbitMQ passes messages to handle until ctx ends.
func RabbitMQ(ctx context.Context, url string, handle postrider.Handler) error {
	//docs:begin consume
	con, err := rabbitmq.NewConsumer(rabbitmq.Config{URL: url, Name: "orders", InFlight: 16})
	if err != nil {
		return err
	}
	defer con.Close()
	err = con.Consume(ctx, func(ctx context.Context, m postrider.Message) error {
		return handle(ctx, m) // nil acknowledges the message
	})
	//docs:end
	return err
}
