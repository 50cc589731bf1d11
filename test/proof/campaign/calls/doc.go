// Package calls is clients whose calls must take effect once, however often they are sent: transactions whose COMMIT may get no answer, and HTTP
// requests with an idempotency key, sent several times at once to servers that may be killed.
//
// Each time that a call takes effect it leaves a row in campaign.operations, which has no constraint that would hide a second one. What a client
// was told is kept in a file beside, which survives the client's death.
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
