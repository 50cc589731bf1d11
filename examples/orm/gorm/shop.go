// Package gorm places orders with GORM, whose transaction the adapter gormtx unwraps.
package gorm

import (
	"context"
	"database/sql"
	"errors"

	"gorm.io/gorm"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/adapter/gormtx"
	"github.com/postrider/postrider/examples/orm"
)

// Order is a row of the table orders.
type Order struct {
	ID   string `json:"id"`
	Item string `json:"item"`
}

// Shop places orders.
type Shop struct {
	DB     *gorm.DB
	Outbox postrider.Outbox[*sql.Tx]
}

//docs:begin shop

// Place writes an order and its message, both or neither.
func (s *Shop) Place(ctx context.Context, item string) error {
	return s.DB.WithContext(ctx).Transaction(func(tx *gorm.DB) error { return s.place(ctx, tx, item) })
}

func (s *Shop) place(ctx context.Context, tx *gorm.DB, item string) error {
	order := Order{ID: postrider.NewID().String(), Item: item}
	if err := tx.Create(&order).Error; err != nil {
		return err
	}
	sqlTx, err := gormtx.From(tx)
	if err != nil {
		return err
	}
	return s.Outbox.Enqueue(ctx, sqlTx, postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: order.ID}, order))
}

//docs:end

// PlaceEach places several orders in one transaction. A refused one is rolled back together with
// its message; the others remain.
func (s *Shop) PlaceEach(ctx context.Context, items ...string) (refused []string, err error) {
	//docs:begin each
	err = s.DB.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		for _, item := range items {
			err := tx.Transaction(func(tx *gorm.DB) error { return s.place(ctx, tx, item) }) // a savepoint
			if errors.Is(err, orm.ErrRefused) {
				refused = append(refused, item)
			} else if err != nil {
				return err
			}
		}
		return nil
	})
	//docs:end
	return refused, err
}
