package brokers

import (
	"context"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/redis/asynq"
)

// Asynq passes messages to handle until ctx ends.
func Asynq(ctx context.Context, handle postrider.Handler) error {
	//docs:begin consume
	con, err := asynq.NewConsumer(asynq.Config{URL: "redis://localhost:6379/0", Queue: "default"})
	//docs:skip
	if err != nil {
		return err
	}
	//docs:resume
	err = con.Consume(ctx, handle)
	//docs:end
	return err
}
