package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// mostSweeps bounds what one round deletes: 10,000 rows of a kind each time. What is left waits for the next round.
	mostSweeps = 100
	// sweepPause leaves the server to others between two sweeps.
	sweepPause = 10 * time.Millisecond
)

// Maintain implements [postrider.Maintainer]: it empties the ring slot that will be written next, once every feed has
// delivered all of it, and drops old rows of the ledger and of other tables, some at a time.
func (s *Store) Maintain(ctx context.Context) error {
	var reclaimed bool
	if err := s.inTurn(ctx, "SELECT @schema@.reclaim()", &reclaimed); err != nil {
		return fmt.Errorf("postgres: reclaim: %w", explain(err))
	}
	more := true
	for n := 0; more && n < mostSweeps; n++ {
		if n > 0 {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(sweepPause):
			}
		}
		if err := s.inTurn(ctx, "SELECT @schema@.sweep()", &more); err != nil {
			return fmt.Errorf("postgres: sweep: %w", explain(err))
		}
	}
	return nil
}

// inTurn runs one statement in a transaction of its own. It is READ COMMITTED whatever the default of the database is: at any other
// level a statement that has waited for a lock would not see what was committed before it had the lock.
func (s *Store) inTurn(ctx context.Context, sql string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	return pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite}, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, s.cfg.in(sql), pgx.QueryExecModeExec).Scan(into)
	})
}
