package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// mostReclaims is how many slots one round empties.
	mostReclaims = 8
	// mostSweeps bounds what one round deletes: each sweep deletes up to 10,000 rows of a table.
	// The next round deletes the rest.
	mostSweeps = 100
	// sweepPause leaves room for other work on the server between two sweeps.
	sweepPause = 10 * time.Millisecond
)

// Maintain implements [feeds.Maintainer]. It empties the next slot of the ring, and others if the
// log is too large, once every feed has delivered all of their messages. Then it deletes old rows
// of the ledger and of other tables, in chunks, and freezes a full slot.
func (s *feedStore) Maintain(ctx context.Context) error {
	var most *int64
	if s.cfg.MaxLogSize > 0 {
		most = &s.cfg.MaxLogSize
	}
	reclaimed := true
	for n := 0; reclaimed && n < mostReclaims; n++ {
		if err := s.inTurn(ctx, &reclaimed, "SELECT @schema@.reclaim($1)", most); err != nil {
			return fmt.Errorf("postgres: reclaim: %w", explain(err))
		}
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
		if err := s.inTurn(ctx, &more, "SELECT @schema@.sweep()"); err != nil {
			return fmt.Errorf("postgres: sweep: %w", explain(err))
		}
	}
	return s.freeze(ctx)
}

// inTurn runs one statement in a transaction of its own. It scans the row that the statement
// returns, unless into is nil.
func (s *feedStore) inTurn(ctx context.Context, into any, sql string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	return pgx.BeginTxFunc(ctx, s.pool, readCommitted, func(tx pgx.Tx) error {
		args = append([]any{pgx.QueryExecModeExec}, args...)
		if into == nil {
			_, err := tx.Exec(ctx, s.cfg.in(sql), args...)
			return err
		}
		return tx.QueryRow(ctx, s.cfg.in(sql), args...).Scan(into)
	})
}
