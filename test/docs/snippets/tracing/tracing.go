// Package tracing contains the snippets of docs/tracing.md.
package tracing

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/inbox"
)

//docs:begin observer
import tracing "github.com/postrider/postrider/adapter/telemetry/otel"

//docs:end

// Order is an order of the shop.
type Order struct{ ID string }

// Trace places an order so that its trace continues at the consumer.
func Trace(ctx context.Context, pool *pgxpool.Pool, outbox postrider.Outbox[pgx.Tx], store inbox.Store[pgx.Tx], order Order) error {
	//docs:begin observer
	observer, err := tracing.New(tracing.Config{System: "nats"}) // providers and propagator are the global ones
	if err != nil {
		return err
	}
	//docs:end

	//docs:begin producer
	traced := postrider.ObserveOutbox(outbox, observer) // outbox is db.Outbox()

	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "INSERT INTO orders (id) VALUES ($1)", order.ID); err != nil {
			return err
		}
		return traced.Enqueue(ctx, tx, postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: order.ID}, order))
	})
	//docs:end
	if err != nil {
		return err
	}
	//docs:begin consumer
	billing, err := inbox.New(store, "billing", inbox.Config{Observer: observer})
	//docs:end
	if err == nil {
		err = billing.Run(ctx)
	}
	return err
}
