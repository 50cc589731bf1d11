package doctor

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// askPooler compares the process that the connection was told of with the one that answers: a pooler makes that number up.
func askPooler(ctx context.Context, p *patient) ([]Finding, error) {
	server, err := value[uint32](ctx, p, "SELECT pg_backend_pid()")
	if err != nil || server == p.tx.Conn().PgConn().PID() {
		return nil, err
	}
	shared, err := p.sharesServers(ctx)
	if err != nil {
		return nil, err
	}
	if !shared {
		return []Finding{{Severity: Info, Finding: "a pooler stands between, which keeps a server connection for each client",
			Why: "Its size, not max_connections, bounds applications and relays; it may hide a failover from them.",
			Fix: "SHOW POOLS, in the pooler's own console"}}, nil
	}
	return []Finding{{Severity: Info, Finding: "a pooler stands between, which hands out server connections by transaction",
		Why: "Relays work with it. Session settings and prepared statements do not survive there, which Go's driver uses unless it is told not to.",
		Fix: "add to the addresses of applications: default_query_exec_mode=exec"}}, nil
}

// sharesServers finds out whether a connection is served by different processes. One that is free again is mostly the next
// to be used; it is taken away here until the answer changes.
func (p *patient) sharesServers(ctx context.Context) (bool, error) {
	first, err := p.Pool.Acquire(ctx)
	if err != nil {
		return false, err
	}
	defer first.Release()
	ask := func(q interface {
		QueryRow(context.Context, string, ...any) pgx.Row
	}) (pid int, err error) {
		err = q.QueryRow(ctx, "SELECT pg_backend_pid()", pgx.QueryExecModeExec).Scan(&pid)
		return pid, err
	}
	before, err := ask(first)
	if err != nil {
		return false, err
	}
	for range 2 {
		tx, err := p.Pool.Begin(ctx)
		if err != nil {
			return false, err
		}
		defer tx.Rollback(ctx) //nolint:errcheck // it has done nothing
		taken, err := ask(tx)
		if err != nil || taken == before {
			return err == nil, err
		}
	}
	after, err := ask(first)
	return after != before, err
}
