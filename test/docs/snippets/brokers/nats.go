package brokers

import (
	"context"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/nats"
)

// NATS passes messages to handle until ctx ends.
func NATS(ctx context.Context, handle postrider.Handler) error {
	//docs:begin consume
	con, err := nats.NewConsumer(nats.Config{URL: "nats://localhost:4222", Name: "order.>", Group: "billing"})
	if err != nil {
		return err
	}
	err = con.Consume(ctx, handle)
	//docs:end
	return err
}

// NATSOrdered passes messages to handle while this process has the lease, until ctx ends.
func NATSOrdered(ctx context.Context, handle postrider.Handler) error {
	//docs:begin ordered
	con, err := nats.NewConsumer(nats.Config{
		URL: "nats://localhost:4222", Name: "order.>", Group: "billing", Ordered: true, Lease: 5 * time.Second,
	})
	//docs:end
	if err != nil {
		return err
	}
	return con.Consume(ctx, handle)
}
