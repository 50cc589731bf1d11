package doctor

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// askPooler compares the process ID that the connection was given with that of the session: a
// pooler makes up its own.
func askPooler(ctx context.Context, p *target) ([]Finding, error) {
	server, err := value[uint32](ctx, p, "SELECT pg_backend_pid()")
	if err != nil || server == p.tx.Conn().PgConn().PID() {
		return nil, err
	}
	shared, err := p.sharesServers(ctx)
	if err != nil {
		return nil, err
	}
	if !shared {
		return []Finding{{Severity: Info, Finding: "there is a pooler in session mode",
			Why: "Its size, not max_connections, bounds applications and relays; it may hide a failover from them.",
			Fix: "SHOW POOLS, in the pooler's own console"}}, nil
	}
	return []Finding{{Severity: Info, Finding: "there is a pooler in transaction mode",
		Why: "Relays work with it. Session settings and prepared statements do not, and Go's driver uses prepared statements by default.",
		Fix: "add to the addresses of applications: default_query_exec_mode=exec"}}, nil
}

// sharesServers reports whether one connection is served by different processes. A pooler mostly
// reuses the server connection that was freed last, so this keeps others busy until the answer
// changes.
func (p *target) sharesServers(ctx context.Context) (bool, error) {
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
		defer tx.Rollback(ctx) //nolint:errcheck // nothing to undo
		taken, err := ask(tx)
		if err != nil || taken == before {
			return err == nil, err
		}
	}
	after, err := ask(first)
	return after != before, err
}
