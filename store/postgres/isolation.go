package postgres

import (
	"context"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// readCommitted holds the options of every transaction that this package begins, whatever the
// default of the database or role: a function that has waited for a lock must see what was
// committed before it got the lock. At any other level a message could stay deferred with nothing
// before it.
var readCommitted = pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite}

// committed is a pool whose single statements are READ COMMITTED too. Without BEGIN, they run at
// the default level, which is almost always READ COMMITTED and costs no extra round trip. If it is
// another one, the first function that a relay calls fails, and from then on each statement gets
// its own transaction.
type committed struct {
	*pgxpool.Pool
	explicit *atomic.Bool
}

func newCommitted(pool *pgxpool.Pool) committed { return committed{pool, new(atomic.Bool)} }

// refused reports whether the server refused a statement because of its isolation level. The caller
// must send it again.
func (c committed) refused(err error) bool {
	if state(err) != "25001" { // active_sql_transaction, of check_isolation
		return false
	}
	c.explicit.Store(true)
	return true
}

// begin starts a transaction for the connection's next statements if they need one. The returned
// function commits it.
func (c committed) begin(ctx context.Context, conn *pgxpool.Conn) (end func(), err error) {
	if !c.explicit.Load() {
		return func() {}, nil
	}
	tx, err := conn.BeginTx(ctx, readCommitted)
	return func() { _ = tx.Commit(ctx) }, err
}

func (c committed) Exec(ctx context.Context, sql string, args ...any) (tag pgconn.CommandTag, err error) {
	if !c.explicit.Load() {
		return c.Pool.Exec(ctx, sql, args...)
	}
	err = pgx.BeginTxFunc(ctx, c.Pool, readCommitted, func(tx pgx.Tx) (err error) {
		tag, err = tx.Exec(ctx, sql, args...)
		return err
	})
	return tag, err
}

func (c committed) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if !c.explicit.Load() {
		return c.Pool.Query(ctx, sql, args...)
	}
	tx, err := c.BeginTx(ctx, readCommitted)
	if err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		_ = tx.Rollback(ctx)
		return nil, err
	}
	return &committedRows{Rows: rows, tx: tx, ctx: ctx}, nil
}

func (c committed) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if !c.explicit.Load() {
		return c.Pool.QueryRow(ctx, sql, args...)
	}
	rows, err := c.Query(ctx, sql, args...)
	return committedRow{rows, err}
}

// committedRows commits after the last row was read and before the caller checks Err. If closed
// earlier, it rolls back.
type committedRows struct {
	pgx.Rows
	tx    pgx.Tx
	ctx   context.Context
	ended bool
	err   error
}

func (r *committedRows) Next() bool {
	if r.Rows.Next() {
		return true
	}
	if r.Rows.Err() == nil && !r.ended {
		r.ended = true
		r.err = r.tx.Commit(r.ctx)
	}
	r.Close()
	return false
}

func (r *committedRows) Err() error {
	if err := r.Rows.Err(); err != nil {
		return err
	}
	return r.err
}

func (r *committedRows) Close() {
	r.Rows.Close()
	if !r.ended {
		r.ended = true
		_ = r.tx.Rollback(r.ctx)
	}
}

type committedRow struct {
	rows pgx.Rows
	err  error
}

func (r committedRow) Scan(into ...any) error {
	if r.err != nil {
		return r.err
	}
	_, err := pgx.CollectExactlyOneRow(r.rows, func(row pgx.CollectableRow) (struct{}, error) { return struct{}{}, row.Scan(into...) })
	return err
}
