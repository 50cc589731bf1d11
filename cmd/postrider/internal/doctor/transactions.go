package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"
)

func askTransactions(ctx context.Context, p *target) ([]Finding, error) {
	type open struct {
		PID                                        int
		User, Application, Database, State, Client string
		Age, Query                                 float64
	}
	all, err := rows[open](ctx, p, `SELECT pid, coalesce(usename, ''), application_name, coalesce(datname, ''), coalesce(state, ''),
			coalesce(host(client_addr), 'local'),
			date_part('epoch', clock_timestamp() - xact_start), date_part('epoch', clock_timestamp() - query_start)
		FROM pg_stat_activity
		WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
		  AND xact_start < clock_timestamp() - make_interval(secs => $1)
		ORDER BY xact_start LIMIT 5`, p.limits.transaction.Seconds())
	var found []Finding
	for _, t := range all {
		found = append(found, Finding{Severity: p.oldness(seconds(t.Age)),
			Finding: fmt.Sprintf("a transaction has been open for %s: pid %d, user %s, application %q, from %s, database %s, %s, last query began %s ago",
				age(seconds(t.Age)), t.PID, t.User, t.Application, t.Client, t.Database, t.State, age(seconds(t.Query))),
			Why: "Its messages are delivered only after it commits, and vacuum cannot clean up anything that is newer.",
			Fix: fmt.Sprintf("SELECT pg_terminate_backend(%d)", t.PID)})
	}
	return found, err
}

func (p *target) oldness(d time.Duration) Severity {
	if d > p.limits.oldTransaction {
		return Problem
	}
	return Warning
}

func askPrepared(ctx context.Context, p *target) ([]Finding, error) {
	type prepared struct {
		ID, Owner, Database string
		Age                 float64
	}
	all, err := rows[prepared](ctx, p, `SELECT gid, owner::text, database::text, date_part('epoch', clock_timestamp() - prepared)
		FROM pg_prepared_xacts WHERE prepared < clock_timestamp() - make_interval(secs => $1)
		ORDER BY prepared LIMIT 5`, p.limits.prepared.Seconds())
	var found []Finding
	for _, t := range all {
		found = append(found, Finding{Severity: p.oldness(seconds(t.Age)),
			Finding: fmt.Sprintf("the prepared transaction %s has been waiting for %s: owner %s, database %s",
				t.ID, age(seconds(t.Age)), t.Owner, t.Database),
			Why: "It survives restarts, keeps its locks, and vacuum cannot clean up anything that is newer.",
			Fix: fmt.Sprintf("in %s, after asking its transaction manager: COMMIT PREPARED %[2]s or ROLLBACK PREPARED %[2]s", t.Database, quote(t.ID))})
	}
	return found, err
}

// quote returns a text as a literal of SQL.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
