package brokers

import (
	"context"
	"os"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/redis"
)

// Redis passes messages to handle until ctx ends.
func Redis(ctx context.Context, handle postrider.Handler) error {
	//docs:begin consume
	con, err := redis.NewConsumer(redis.Config{
		URL:    "redis://localhost:6379/0",
		Name:   "order",
		Group:  "billing",
		Member: os.Getenv("POD_NAME"), // stable, one per process
	})
	//docs:skip
	if err != nil {
		return err
	}
	//docs:resume
	err = con.Consume(ctx, handle)
	//docs:end
	return err
}

// RedisOrdered passes messages to handle while this process has the lease, until ctx ends.
func RedisOrdered(ctx context.Context, handle postrider.Handler) error {
	//docs:begin ordered
	con, err := redis.NewConsumer(redis.Config{
		URL: "redis://localhost:6379/0", Name: "order", Group: "billing", Ordered: true, Lease: 5 * time.Second,
	})
	//docs:end
	if err != nil {
		return err
	}
	return con.Consume(ctx, handle)
}
