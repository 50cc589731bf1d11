// Package sqlx places orders with sqlx, whose transaction embeds a *sql.Tx.
package sqlx

import (
	"context"
	"database/sql"

	"github.com/jmoiron/sqlx"

	"github.com/postrider/postrider"
)

//docs:begin shop

// Order is a row of the table orders.
type Order struct {
	ID   string `db:"id" json:"id"`
	Item string `db:"item" json:"item"`
}

// Shop places orders.
type Shop struct {
	DB     *sqlx.DB
	Outbox postrider.Outbox[*sql.Tx]
}

// Place writes an order and its message, both or neither.
func (s *Shop) Place(ctx context.Context, item string) error {
	tx, err := s.DB.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it does nothing, after an error the first error counts

	order := Order{ID: postrider.NewID().String(), Item: item}
	if _, err := tx.NamedExecContext(ctx, "INSERT INTO orders (id, item) VALUES (:id, :item)", order); err != nil {
		return err
	}
	if err := s.Outbox.Enqueue(ctx, tx.Tx, postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: order.ID}, order)); err != nil {
		return err
	}
	return tx.Commit()
}

//docs:end
