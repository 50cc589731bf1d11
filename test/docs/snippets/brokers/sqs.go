package brokers

import (
	"context"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/sqs"
)

// SQS passes messages to handle until ctx ends.
func SQS(ctx context.Context, handle postrider.Handler) error {
	//docs:begin consume
	con, err := sqs.NewConsumer(sqs.Config{
		URL: "sqs://eu-central-1", Name: "order.fifo",
	})
	if err != nil {
		return err
	}
	defer con.Close()
	return con.Consume(ctx, handle)
	//docs:end
}
