// Package readme has what README.md shows.
package readme

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/nats"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/postgres"
)

// Order is what the shop sells.
type Order struct {
	ID    string `json:"id"`
	Cents int    `json:"cents"`
}

func placeOrder(ctx context.Context, tx pgx.Tx, cents int) (Order, error) {
	order := Order{Cents: cents}
	err := tx.QueryRow(ctx, "INSERT INTO orders (cents) VALUES ($1) RETURNING id::text", cents).Scan(&order.ID)
	return order, err
}

func charge(ctx context.Context, tx pgx.Tx, o Order) error {
	_, err := tx.Exec(ctx, "INSERT INTO charges (order_id, cents) VALUES ($1, $2)", o.ID, o.Cents)
	return err
}

// Write places an order and says so, in one transaction.
func Write(ctx context.Context, pool *pgxpool.Pool, outbox postrider.Outbox[pgx.Tx], cart int) error {
	//docs:begin write
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		order, err := placeOrder(ctx, tx, cart)
		if err != nil {
			return err
		}
		return outbox.Enqueue(ctx, tx, postrider.Event("order.placed", "order", order.ID, order))
	})
	//docs:end
	return err
}

// Carry takes messages to NATS.
func Carry(ctx context.Context, store *postgres.Store) error {
	//docs:begin carry
	pub, err := nats.NewPublisher(nats.Config{URL: "nats://localhost:4222"})
	//docs:skip
	if err != nil {
		return err
	}
	//docs:resume
	r, err := relay.New(store, pub, relay.Config{})
	//docs:skip
	if err != nil {
		return err
	}
	//docs:resume
	err = r.Run(ctx) // until ctx ends; then it finishes what is in flight and hands over
	//docs:end
	return err
}

// Receive charges for orders.
func Receive(ctx context.Context, store inbox.Store[pgx.Tx], consumer postrider.Consumer) error {
	//docs:begin receive
	in, err := inbox.New(store, "billing", inbox.Config{})
	//docs:skip
	if err != nil {
		return err
	}
	//docs:resume
	inbox.On(in, "order.placed", func(ctx context.Context, tx pgx.Tx, o Order) error {
		return charge(ctx, tx, o)
	})
	err = in.Run(ctx, consumer) // of any broker
	//docs:end
	return err
}
