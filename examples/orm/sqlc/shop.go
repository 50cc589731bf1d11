// Package sqlc places orders with code that sqlc has generated. Its WithTx takes the same
// transaction as the outbox.
package sqlc

import (
	"context"
	"database/sql"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/examples/orm/sqlc/pgsql"
)

// Shop places orders with database/sql.
type Shop struct {
	DB      *sql.DB
	Queries *pgsql.Queries
	Outbox  postrider.Outbox[*sql.Tx]
}

//docs:begin shop

// Place writes an order and its message, both or neither.
func (s *Shop) Place(ctx context.Context, item string) error {
	tx, err := s.DB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it does nothing, after an error the first error counts

	order := pgsql.InsertOrderParams{ID: postrider.NewID().String(), Item: item}
	if err := s.Queries.WithTx(tx).InsertOrder(ctx, order); err != nil {
		return err
	}
	if err := s.Outbox.Enqueue(ctx, tx, postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: order.ID}, order)); err != nil {
		return err
	}
	return tx.Commit()
}

//docs:end
