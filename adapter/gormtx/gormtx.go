// Package gormtx finds the *sql.Tx of a GORM transaction, so that an outbox can write in it.
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
// GORM keeps the transaction in Statement.ConnPool, and with PrepareStmt: true inside another type, once for each session that
// asks for it. A type assertion in the application would hold until somebody switches that on.
package gormtx

import (
	"database/sql"
	"errors"
	"fmt"

	"gorm.io/gorm"
)

// ErrNoTransaction is returned for a *gorm.DB that is not in a transaction: a message that it wrote would be there whether or not
// the rest is.
var ErrNoTransaction = errors.New("gormtx: not in a transaction: use the *gorm.DB that Transaction or Begin gives")

// From returns the transaction that db is in. It belongs to GORM, which commits it or rolls it back.
//
// In a nested Transaction it is the outer one, with a savepoint: a message is taken back together with whatever else is
// written behind the savepoint. In a hook such as AfterCreate it is the transaction of the statement, which is there unless
// SkipDefaultTransaction is set.
//
// Without a transaction it returns [ErrNoTransaction]. A db that carries an error, of Begin for instance, returns that one: GORM would
// execute nothing either.
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
