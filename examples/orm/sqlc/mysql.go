package sqlc

import (
	"context"
	"database/sql"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/examples/orm/sqlc/mysql"
)

// MySQLShop places orders with database/sql, in MariaDB and MySQL.
type MySQLShop struct {
	DB      *sql.DB
	Queries *mysql.Queries
	Outbox  postrider.Outbox[*sql.Tx]
}

// Place writes an order and its message, or neither.
func (s *MySQLShop) Place(ctx context.Context, item string) error {
	tx, err := s.DB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it does nothing, after an error the first error counts

	order := mysql.InsertOrderParams{ID: postrider.NewID().String(), Item: item}
	if err := s.Queries.WithTx(tx).InsertOrder(ctx, order); err != nil {
		return err
	}
	if err := s.Outbox.Enqueue(ctx, tx, postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: order.ID}, order)); err != nil {
		return err
	}
	return tx.Commit()
}
