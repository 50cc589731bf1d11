package gorm

import (
	"database/sql"
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/adapter/gormtx"
	"github.com/postrider/postrider/examples/orm"
	"github.com/postrider/postrider/examples/orm/internal/ormtest"
)

// announced is an order that writes its message itself, wherever it is created.
type announced struct {
	Order
	outbox postrider.Outbox[*sql.Tx]
}

func (announced) TableName() string { return "orders" }

func (o *announced) AfterCreate(tx *gorm.DB) error {
	sqlTx, err := gormtx.From(tx)
	if err != nil {
		return err
	}
	return o.outbox.Enqueue(tx.Statement.Context, sqlTx, postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: o.ID}, o.Order))
}

// TestHook checks that a hook runs in the transaction of its statement, which GORM opens if there
// is none.
func TestHook(t *testing.T) {
	each(t, func(t *testing.T, db *ormtest.Database, shop *Shop) {
		create := func(tx *gorm.DB, id, item string) error {
			return tx.WithContext(t.Context()).Create(&announced{Order{id, item}, shop.Outbox}).Error
		}
		if err := create(shop.DB, "1", "saddle"); err != nil {
			t.Error(err)
		}
		if err := create(shop.DB, "2", ormtest.Refused); !errors.Is(err, orm.ErrRefused) {
			t.Error(err)
		}
		if err := shop.DB.Transaction(func(tx *gorm.DB) error { return create(tx, "3", "stirrup") }); err != nil {
			t.Error(err)
		}
		// Without a transaction the order cannot be rolled back. But the message is not written,
		// and an error is returned.
		err := create(shop.DB.Session(&gorm.Session{SkipDefaultTransaction: true}), "4", "reins")
		if !errors.Is(err, gormtx.ErrNoTransaction) {
			t.Error(err)
		}
		shop.DB.Delete(&Order{ID: "4"})
		db.Expect(t, "saddle", "stirrup")
	})
}

// TestGivenUp checks that a panic rolls back, and that an abandoned manual transaction does too.
func TestGivenUp(t *testing.T) {
	each(t, func(t *testing.T, db *ormtest.Database, shop *Shop) {
		func() {
			defer func() { _ = recover() }()
			_ = shop.DB.Transaction(func(tx *gorm.DB) error {
				if err := shop.place(t.Context(), tx, "reins"); err != nil {
					t.Error(err)
				}
				panic("test")
			})
		}()
		tx := shop.DB.Begin()
		if err := errors.Join(shop.place(t.Context(), tx, "reins"), tx.Rollback().Error); err != nil {
			t.Error(err)
		}
		tx = shop.DB.Begin()
		if err := errors.Join(shop.place(t.Context(), tx, "saddle"), tx.Commit().Error); err != nil {
			t.Error(err)
		}
		db.Expect(t, "saddle")
	})
}
