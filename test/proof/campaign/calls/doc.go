// Package calls runs clients whose calls must take effect exactly once, however often they are sent:
// transactions whose COMMIT may get no response, and HTTP requests with an idempotency key, sent
// several times concurrently to servers that may be killed.
//
// Each effect inserts a row into campaign.operations. That table has no constraint that would hide a
// second row. Each client records its responses in a file, which survives the client's death.
package calls

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Kinds of calls.
const (
	commit   = "commit"   // a transaction of a postrider.Transactor
	handle   = "handle"   // a request to idempotency.Keys.Handle
	complete = "complete" // a request to idempotency.Keys.Middleware, whose handler calls Complete
)

// Prepare makes the table.
func Prepare(ctx context.Context, pool *pgxpool.Pool) error {
	_, err := pool.Exec(ctx, `
		CREATE SCHEMA IF NOT EXISTS campaign;
		CREATE TABLE campaign.operations (kind text NOT NULL, client text NOT NULL, n bigint NOT NULL)`, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		return fmt.Errorf("calls: %w", err)
	}
	return nil
}

// take is the effect of a call.
func take(ctx context.Context, tx pgx.Tx, kind, client string, n int64) error {
	_, err := tx.Exec(ctx, "INSERT INTO campaign.operations (kind, client, n) VALUES ($1, $2, $3)", kind, client, n)
	return err
}
