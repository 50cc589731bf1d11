package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// lookAround begins a read-only transaction whose statements see one snapshot. It disables JIT: no
// statement here is worth compiling, whatever the planner estimates for functions that return rows.
const lookAround = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL jit = off"

func (d *Admin) look(ctx context.Context, f func(tx pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, d.pool, pgx.TxOptions{BeginQuery: lookAround}, f)
}

// lookUp returns the rows of one statement.
func lookUp[T any](ctx context.Context, d *Admin, sql string, args []any, scan pgx.RowToFunc[T]) (found []T, err error) {
	err = d.look(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, d.cfg.in(sql), append([]any{pgx.QueryExecModeExec}, args...)...)
		if err != nil {
			return err
		}
		found, err = pgx.CollectRows(rows, scan)
		return err
	})
	return found, explain(err)
}
