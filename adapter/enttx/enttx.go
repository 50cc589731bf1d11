// Package enttx finds the *sql.Tx of an ent transaction, so that an outbox can write in it.
//
// ent gets a driver that knows where to leave it, once, and code that writes messages begins its transactions with [Begin]:
//
//	client := ent.NewClient(ent.Driver(enttx.Driver(entsql.OpenDB(dialect.Postgres, db))))
//
//	tx, sqlTx, err := enttx.Begin(ctx, client.Tx)
//	if err != nil {
//		return err
//	}
//	defer tx.Rollback()
//	order, err := tx.Order.Create().SetItem(item).Save(ctx)
//	if err != nil {
//		return err
//	}
//	if err := outbox.Enqueue(ctx, sqlTx, postrider.Event("order.placed", "order", order.ID.String(), order)); err != nil {
//		return err
//	}
//	return tx.Commit()
//
// # Why so
//
// The generated ent.Tx keeps its transaction in fields that nobody else can read. The code generator's feature sql/execquery opens
// ExecContext and QueryContext, which is less than a *sql.Tx and has to be generated into every project. A client over a
// transaction of one's own, made for each, would forget the hooks and interceptors that were added to the first one by Use and
// Intercept, and would be no ent.Tx for the functions that take one. The driver, on the other hand, begins all transactions,
// and is handed the context of Client.Tx: that is enough, with any generated code.
package enttx

import (
	"context"
	"database/sql"
	"errors"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
)

// ErrNoTransaction is returned by [Begin] when no transaction was begun by a driver of this package.
var ErrNoTransaction = errors.New("enttx: no *sql.Tx: give the ent client its driver as ent.Driver(enttx.Driver(…)), " +
	"and begin with a client that is not in a transaction")

// Driver returns d, with [Begin] able to see its transactions. Drivers that wrap others, such as those of ent for debugging,
// go around it.
func Driver(d *entsql.Driver) dialect.Driver { return driver{d} }

type driver struct{ *entsql.Driver }

// Tx implements [dialect.Driver].
func (d driver) Tx(ctx context.Context) (dialect.Tx, error) { return d.BeginTx(ctx, nil) }

// BeginTx is what the generated Client.BeginTx looks for.
func (d driver) BeginTx(ctx context.Context, opts *sql.TxOptions) (dialect.Tx, error) {
	tx, err := d.Driver.BeginTx(ctx, opts)
	if err != nil {
		return nil, err
	}
	if left, ok := ctx.Value(leaveHere{}).(*left); ok && left.tx == nil {
		if t, ok := tx.(*entsql.Tx); ok {
			left.tx, _ = t.Tx.(*sql.Tx)
		}
	}
	return tx, nil
}

// leaveHere is the key of the context under which a driver finds the place for its transaction.
type leaveHere struct{}

type left struct{ tx *sql.Tx }

// Tx is what every generated ent.Tx is.
type Tx interface {
	Commit() error
	Rollback() error
}

// Begin calls begin, which is the Tx method of the generated client or a function around BeginTx, and returns ent's transaction together
// with the *sql.Tx that it is made of. Both are the same transaction: it ends with Commit or Rollback of ent's, which also
// runs ent's hooks.
//
// If the transaction was not begun by a driver of this package, it is rolled back, and the error is [ErrNoTransaction].
func Begin[T Tx](ctx context.Context, begin func(context.Context) (T, error)) (T, *sql.Tx, error) {
	var left left
	var none T
	tx, err := begin(context.WithValue(ctx, leaveHere{}, &left))
	if err != nil {
		return none, nil, err
	}
	if left.tx == nil {
		return none, nil, errors.Join(ErrNoTransaction, tx.Rollback())
	}
	return tx, left.tx, nil
}
