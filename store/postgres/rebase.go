package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/admin"
)

// Rebased says what [DB.Rebase] kept for a feed.
type Rebased struct {
	Feed      string `json:"feed"`
	Unsettled int64  `json:"unsettled"`
}

// Foreign reports whether relays with this configuration send nothing because the ledger was
// written in another database or has another Home.
func (db *DB) Foreign(ctx context.Context) (foreign bool, err error) {
	err = db.pool.QueryRow(ctx, db.cfg.in("SELECT NOT @schema@.at_home() OR EXISTS (SELECT FROM @schema@.identity i WHERE i.home <> nullif($1, ''))"),
		pgx.QueryExecModeExec, db.cfg.Home).Scan(&foreign)
	return foreign, explain(err)
}

// Rebase makes the ledger belong to this database, after a restore or a clone. It keeps the
// messages that the ledger had not settled for at least one feed, deletes all other messages, and
// starts every cursor from the beginning. The ledger gets the Home of the configuration, if there is one.
// Producers wait while it runs. It is recorded in the audit log.
func (db *DB) Rebase(ctx context.Context, by admin.By) ([]Rebased, error) {
	return db.rebase(ctx, &by)
}

// PlanRebase returns what [DB.Rebase] would keep, and changes nothing. It does the same work, so
// producers wait for it too.
func (db *DB) PlanRebase(ctx context.Context) ([]Rebased, error) { return db.rebase(ctx, nil) }

var errPlanned = errors.New("only planned")

// rebase rolls back if by is nil.
func (db *DB) rebase(ctx context.Context, by *admin.By) ([]Rebased, error) {
	var kept []Rebased
	err := pgx.BeginTxFunc(ctx, newCommitted(db.pool), readCommitted, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, db.cfg.in("SELECT feed, unsettled FROM @schema@.rebase()"), pgx.QueryExecModeExec)
		if err != nil {
			return err
		}
		if kept, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Rebased]); err != nil {
			return err
		}
		if by == nil {
			return errPlanned
		}
		// Otherwise the first relay would set it, and that might be one that still has the
		// configuration of the original.
		if db.cfg.Home != "" {
			if _, err := tx.Exec(ctx, db.cfg.in("SELECT @schema@.check_home($1)"), pgx.QueryExecModeExec, db.cfg.Home); err != nil {
				return err
			}
		}
		total, feeds := int64(0), make(map[string]int64)
		for _, f := range kept {
			total, feeds[f.Feed] = total+f.Unsettled, f.Unsettled
		}
		target, err := json.Marshal(map[string]any{"feeds": feeds})
		if err == nil {
			_, err = tx.Exec(ctx, db.cfg.in("SELECT @schema@.record($1, $2, 'rebase', NULL, $3, $4::jsonb)"), pgx.QueryExecModeExec,
				by.Who, by.Why, total, string(target))
		}
		return err
	})
	if err == nil || errors.Is(err, errPlanned) {
		return kept, nil
	}
	return nil, fmt.Errorf("postgres: rebase: %w", explain(err))
}
