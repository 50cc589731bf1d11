package fault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/test/proof/campaign/record"
	"github.com/postrider/postrider/test/proof/campaign/world"
)

// sqlKinds are faults caused by other users of the same database.
func sqlKinds() []Kind {
	shares := []string{theDatabase}
	return []Kind{
		{
			// When its session is terminated, a commit no longer waits for the standby: a failover
			// could then lose it.
			Name: "backend-terminate", Doc: "sessions are terminated again and again, at random", Weight: 8,
			Shortest: 2 * time.Second, Longest: 8 * time.Second, Claims: []string{theDatabase}, Begin: terminate,
		},
		{
			Name: "held-transaction", Doc: "a transaction with an old snapshot and an ID of its own is held open", Weight: 6,
			Shortest: 10 * time.Second, Longest: 20 * time.Second, Shares: shares, Begin: holdTransaction,
		},
		{
			Name: "lock-table", Doc: "a part of the log is locked exclusively", Weight: 6,
			Shortest: time.Second, Longest: 4 * time.Second, Shares: shares, Begin: lockTable,
		},
		{
			Name: "prepared-transaction", Doc: "a prepared transaction is left open for a while", Weight: 4,
			Shortest: 5 * time.Second, Longest: 15 * time.Second, Claims: []string{theDatabase}, Begin: prepareTransaction,
		},
		{
			Name: "vacuum-full", Doc: "a table of the schema is rewritten under an exclusive lock", Weight: 4,
			Shortest: 0, Longest: time.Second, Takes: 2 * time.Second, Shares: shares, Begin: vacuumFull,
		},
		{
			Name: "statistics-reset", Doc: "what the planner knows about the schema is forgotten", Weight: 3,
			Shortest: 0, Longest: time.Second, Shares: shares, Begin: forgetStatistics,
		},
	}
}

var touchesDatabase = []string{record.Database}

// terminate terminates sessions, except the harness's own, a few at a time.
func terminate(ctx context.Context, w *world.World, random *rand.Rand) (*Running, error) {
	conn, err := w.Connect(ctx)
	if err != nil {
		return nil, err
	}
	share := 0.05 + 0.2*random.Float64()
	loop, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for loop.Err() == nil {
			_, err := conn.Exec(loop, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
				WHERE backend_type = 'client backend' AND application_name NOT IN ('admin', 'world', 'fault') AND random() < $1`, share)
			if err != nil {
				return // the server is down, and with it all sessions
			}
			select {
			case <-loop.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	}()
	return &Running{
		Target: world.Primary, Detail: fmt.Sprintf("%.0f %% of the sessions, five times a second", 100*share), Touches: touchesDatabase,
		Heal: func(context.Context) error {
			cancel()
			<-ended
			_ = conn.Close(context.WithoutCancel(ctx)) // the server may be down
			return nil
		},
	}, nil
}

// session runs statements on a connection that stays open until the fault is healed or the
// connection is lost.
func session(ctx context.Context, w *world.World, statements ...string) (heal func(context.Context) error, err error) {
	conn, err := w.Connect(ctx)
	if err != nil {
		return nil, err
	}
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql); err != nil {
			_ = conn.Close(ctx)
			return nil, fmt.Errorf("%s: %w", sql, err)
		}
	}
	return func(ctx context.Context) error {
		_, _ = conn.Exec(ctx, "ROLLBACK")
		_ = conn.Close(ctx)
		return nil
	}, nil
}

func holdTransaction(ctx context.Context, w *world.World, _ *rand.Rand) (*Running, error) {
	heal, err := session(ctx, w, "BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT pg_current_xact_id()")
	if err != nil {
		return nil, err
	}
	return &Running{Target: world.Primary, Touches: touchesDatabase, Heal: heal}, nil
}

func lockTable(ctx context.Context, w *world.World, random *rand.Rand) (*Running, error) {
	table, err := drawTable(ctx, w, random, "c.relispartition")
	if err != nil {
		return nil, err
	}
	heal, err := session(ctx, w, "BEGIN", "SET LOCAL lock_timeout = '5s'", "LOCK TABLE "+table+" IN ACCESS EXCLUSIVE MODE")
	if err != nil {
		return nil, err
	}
	return &Running{Target: table, Touches: touchesDatabase, Heal: heal}, nil
}

// drawTable draws a table of the schema that matches a condition.
func drawTable(ctx context.Context, w *world.World, random *rand.Rand, condition string) (string, error) {
	conn, err := w.Connect(ctx)
	if err != nil {
		return "", err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	rows, err := conn.Query(ctx, `SELECT c.oid::regclass::text FROM pg_class c
		WHERE c.relnamespace = 'postrider'::regnamespace AND c.relkind = 'r' AND `+condition+` ORDER BY 1`)
	if err != nil {
		return "", err
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return "", err
	}
	return pick(random, tables)
}

func prepareTransaction(ctx context.Context, w *world.World, random *rand.Rand) (*Running, error) {
	name := fmt.Sprintf("fault-%016x", random.Uint64())
	heal, err := session(ctx, w, "BEGIN", "SELECT pg_current_xact_id()", "PREPARE TRANSACTION '"+name+"'")
	if err != nil {
		return nil, err
	}
	if err := heal(ctx); err != nil { // no session is needed any more
		return nil, err
	}
	end := "ROLLBACK PREPARED '" + name + "'"
	if random.IntN(2) == 0 {
		end = "COMMIT PREPARED '" + name + "'"
	}
	return &Running{
		Target: world.Primary, Detail: name, Touches: touchesDatabase,
		Heal: func(ctx context.Context) error {
			conn, err := w.Connect(ctx)
			if err != nil {
				return err
			}
			defer conn.Close(context.WithoutCancel(ctx))
			_, err = conn.Exec(ctx, end)
			return err
		},
	}, nil
}

func vacuumFull(ctx context.Context, w *world.World, random *rand.Rand) (*Running, error) {
	table, err := drawTable(ctx, w, random, "true")
	if err != nil {
		return nil, err
	}
	heal, err := session(ctx, w, "SET lock_timeout = '5s'", "VACUUM (FULL) "+table)
	if err != nil {
		return nil, err
	}
	return &Running{Target: table, Touches: touchesDatabase, Heal: heal}, nil
}

// forgetStatistics does not reset the database-wide counters, because the campaign itself reads
// those.
func forgetStatistics(ctx context.Context, w *world.World, _ *rand.Rand) (*Running, error) {
	heal, err := session(ctx, w, `DELETE FROM pg_statistic WHERE starelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'postrider'::regnamespace)`,
		`SELECT pg_stat_reset_single_table_counters(oid) FROM pg_class WHERE relnamespace = 'postrider'::regnamespace AND relkind = 'r'`)
	if err != nil {
		return nil, err
	}
	return &Running{Target: world.Primary, Touches: touchesDatabase, Heal: heal}, nil
}
