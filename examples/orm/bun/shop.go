// Package bun places orders with bun, whose transaction embeds a *sql.Tx.
package bun

import (
	"context"
	"database/sql"
	"errors"

	"github.com/uptrace/bun"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/examples/orm"
)

// Order is a row of the table orders.
type Order struct {
	ID   string `bun:",pk" json:"id"`
	Item string `json:"item"`
}

//docs:begin shop

// Shop places orders.
type Shop struct {
	DB     *bun.DB
	Outbox postrider.Outbox[*sql.Tx]
}

// Place writes an order and its message, both or neither.
func (s *Shop) Place(ctx context.Context, item string) error {
	return s.DB.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error { return s.place(ctx, tx, item) })
}

func (s *Shop) place(ctx context.Context, tx bun.Tx, item string) error {
	order := Order{ID: postrider.NewID().String(), Item: item}
	if _, err := tx.NewInsert().Model(&order).Exec(ctx); err != nil {
		return err
	}
	return s.Outbox.Enqueue(ctx, tx.Tx, postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: order.ID}, order))
}

//docs:end

//docs:begin each

// PlaceEach places several orders in one transaction. One that is refused is taken back together with its message; the others
// stay.
func (s *Shop) PlaceEach(ctx context.Context, items ...string) (refused []string, err error) {
	err = s.DB.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		for _, item := range items {
			err := tx.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error { return s.place(ctx, tx, item) }) // a savepoint
			if errors.Is(err, orm.ErrRefused) {
				refused = append(refused, item)
			} else if err != nil {
				return err
			}
		}
		return nil
	})
	return refused, err
}

//docs:end
