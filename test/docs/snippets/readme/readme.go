// Package readme contains the snippets of README.md.
package readme

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
)

// Order is an order of the shop.
type Order struct {
	ID    string `json:"id"`
	Cents int    `json:"cents"`
}

func placeOrder(ctx context.Context, tx pgx.Tx, cents int) (Order, error) {
	order := Order{Cents: cents}
	err := tx.QueryRow(ctx, "INSERT INTO orders (cents) VALUES ($1) RETURNING id::text", cents).Scan(&order.ID)
	return order, err
}

// Write writes an order and its message, in one transaction.
func Write(ctx context.Context, pool *pgxpool.Pool, outbox postrider.Outbox[pgx.Tx], cart int) error {
	//docs:begin write
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		order, err := placeOrder(ctx, tx, cart)
		if err != nil {
			return err
		}
		return outbox.Enqueue(ctx, tx, postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: order.ID}, order))
	})
	//docs:end
	return err
}
