// Package databasesql places orders with database/sql alone.
package databasesql

import (
	"context"
	"database/sql"

	"github.com/postrider/postrider"
)

// Shop places orders.
type Shop struct {
	DB     *sql.DB
	Outbox postrider.Outbox[*sql.Tx]
	Insert string // of an order: $1, $2 with PostgreSQL, ?, ? with MariaDB and MySQL
}

// Order is a row of the table orders.
type Order struct {
	ID   string `json:"id"`
	Item string `json:"item"`
}

//docs:begin shop

// Place writes an order and its message, both or neither.
func (s *Shop) Place(ctx context.Context, item string) error {
	tx, err := s.DB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it does nothing, after an error the first error counts

	order := Order{ID: postrider.NewID().String(), Item: item}
	if _, err := tx.ExecContext(ctx, s.Insert, order.ID, order.Item); err != nil {
		return err
	}
	if err := s.Outbox.Enqueue(ctx, tx, postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: order.ID}, order)); err != nil {
		return err
	}
	return tx.Commit()
}

//docs:end
