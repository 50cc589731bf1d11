package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// drawn is a sequence number that was drawn before a transaction of our own took an ID and
// completed. By the rule of [floor], the number is a floor for every snapshot taken from now on in
// the same generation.
type drawn struct {
	seq        int64
	generation string
	xid        string
}

func askDrawn(ctx context.Context, pool *pgxpool.Pool, cfg Config) (d drawn, err error) {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	err = pool.QueryRow(ctx, cfg.in("SELECT coalesce(pg_sequence_last_value('@schema@.message_seq'), 0), coalesce(@schema@.current_generation(), '')"),
		pgx.QueryExecModeExec).Scan(&d.seq, &d.generation)
	if err != nil {
		return d, err
	}
	err = pool.QueryRow(ctx, "SELECT pg_current_xact_id()::text", pgx.QueryExecModeExec).Scan(&d.xid)
	return d, err
}

// floorWait is how long findFloor waits for in-flight transactions.
const floorWait = time.Second

// findFloor returns a floor for snapshots taken from now on, so that a new feed need not read the
// log before it. If everything in flight ends soon, those snapshots also see everything up to the
// floor: then low equals floor. Otherwise low is nil.
func findFloor(ctx context.Context, pool *pgxpool.Pool, cfg Config) (floor, low *int64, err error) {
	d, err := askDrawn(ctx, pool, cfg)
	if err != nil {
		return nil, nil, err
	}
	for until := time.Now().Add(floorWait); time.Now().Before(until); {
		var ended bool
		err = pool.QueryRow(ctx, "SELECT pg_snapshot_xmin(pg_current_snapshot()) > $1::xid8", pgx.QueryExecModeExec, d.xid).Scan(&ended)
		if err != nil {
			return nil, nil, err
		}
		if ended {
			return &d.seq, &d.seq, nil
		}
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
	return &d.seq, nil, nil
}
