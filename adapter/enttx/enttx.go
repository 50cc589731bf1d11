// Package enttx exposes the *sql.Tx of an ent transaction, so that an outbox can write in it.
//
// Wrap ent's driver once with [Driver], and begin transactions that write messages with [Begin]:
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
// # Why it works this way
//
// The generated ent.Tx keeps its transaction in unexported fields. The code generator's feature
// sql/execquery exposes ExecContext and QueryContext, but no *sql.Tx, and every project would have
// to generate it. A new client over an own transaction would lack the hooks and interceptors that
// Use and Intercept added to the first client, and would not be an ent.Tx for functions that take
// one. The driver, in contrast, begins every transaction and receives the context of Client.Tx.
// That is enough, and works with any generated code.
package enttx

import (
	"context"
	"database/sql"
	"errors"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
)

// ErrNoTransaction is returned by [Begin] if no driver of this package began the transaction.
var ErrNoTransaction = errors.New("enttx: no *sql.Tx: give the ent client its driver as ent.Driver(enttx.Driver(…)), " +
	"and begin with a client that is not in a transaction")

// Driver wraps d so that [Begin] can see its transactions. Apply it to ent's SQL driver itself:
// drivers that wrap others, such as ent's debug driver, go around it.
func Driver(d *entsql.Driver) dialect.Driver { return driver{d} }

type driver struct{ *entsql.Driver }

// Tx implements [dialect.Driver].
func (d driver) Tx(ctx context.Context) (dialect.Tx, error) { return d.BeginTx(ctx, nil) }

// BeginTx is the method that the generated Client.BeginTx looks for.
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

// leaveHere is the context key under which a driver stores its transaction.
type leaveHere struct{}

type left struct{ tx *sql.Tx }

// Tx is the part of a generated ent.Tx that Begin needs.
type Tx interface {
	Commit() error
	Rollback() error
}

// Begin calls begin, which is the Tx method of the generated client or a wrapper of BeginTx, and
// returns ent's transaction together with the underlying *sql.Tx. Both are the same transaction:
// end it with Commit or Rollback of ent's, which also runs ent's hooks.
//
// If no driver of this package began the transaction, Begin rolls it back and returns
// [ErrNoTransaction].
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
