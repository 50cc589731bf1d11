package sqlc

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/examples/orm/sqlc/pgxv5"
)

// PgxShop places orders with pgx.
type PgxShop struct {
	Pool    *pgxpool.Pool
	Queries *pgxv5.Queries
	Outbox  postrider.Outbox[pgx.Tx]
}

//docs:begin pgx

// Place writes an order and its message, both or neither.
func (s *PgxShop) Place(ctx context.Context, item string) error {
	return pgx.BeginFunc(ctx, s.Pool, func(tx pgx.Tx) error {
		order := pgxv5.InsertOrderParams{ID: postrider.NewID().String(), Item: item}
		if err := s.Queries.WithTx(tx).InsertOrder(ctx, order); err != nil {
			return err
		}
		return s.Outbox.Enqueue(ctx, tx, postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: order.ID}, order))
	})
}

//docs:end
