// Package gormtx returns the *sql.Tx of a GORM transaction, so that an outbox can write in it.
//
//	err := db.Transaction(func(tx *gorm.DB) error {
//		if err := tx.Create(&order).Error; err != nil {
//			return err
//		}
//		sqlTx, err := gormtx.From(tx)
//		if err != nil {
//			return err
//		}
//		return outbox.Enqueue(ctx, sqlTx, postrider.Event("order.placed", "order", order.ID, order))
//	})
//
// GORM keeps the transaction in Statement.ConnPool; with PrepareStmt: true it wraps it in another
// type, for each session that enables it. A type assertion in the application works only until
// somebody enables that option.
package gormtx

import (
	"database/sql"
	"errors"
	"fmt"

	"gorm.io/gorm"
)

// ErrNoTransaction is returned for a *gorm.DB that is not in a transaction: a message written
// through it would not be atomic with the other changes.
var ErrNoTransaction = errors.New("gormtx: not in a transaction: use the *gorm.DB that Transaction or Begin gives")

// From returns the transaction of db. GORM owns it, and commits it or rolls it back.
//
// In a nested Transaction it is the outer one, with a savepoint: rolling back to the savepoint also
// discards messages written after it. In a hook such as AfterCreate it is the transaction of the
// statement, which exists unless SkipDefaultTransaction is set.
//
// Without a transaction From returns [ErrNoTransaction]. If db carries an error, for example from
// Begin, From returns that error: GORM would not execute anything either.
func From(db *gorm.DB) (*sql.Tx, error) {
	if db == nil || db.Statement == nil {
		return nil, ErrNoTransaction
	}
	if db.Error != nil {
		return nil, fmt.Errorf("gormtx: %w", db.Error)
	}
	pool := db.Statement.ConnPool
	for {
		switch p := pool.(type) {
		case *sql.Tx:
			if p == nil {
				return nil, ErrNoTransaction
			}
			return p, nil
		case *gorm.PreparedStmtTX:
			if p == nil {
				return nil, ErrNoTransaction
			}
			pool = p.Tx
		case gorm.TxCommitter:
			return nil, fmt.Errorf("gormtx: the transaction is a %T, and no *sql.Tx is known to be in it", p)
		default:
			return nil, ErrNoTransaction
		}
	}
}
