package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// limits are the thresholds of findings.
type limits struct {
	check          time.Duration // timeout of a check
	transaction    time.Duration // age of an open transaction,
	prepared       time.Duration // or of a prepared one,
	oldTransaction time.Duration // or of either, from which it is a problem
	clock          time.Duration // difference between clocks
	connections    float64       // share of max_connections
	walBytes       int64         // that a replication slot keeps
	deadTuples     int64         // dead rows of a table that are also more than half of its rows
	slotAge        int64         // transactions since a slot was last frozen
	expiredKeys    int64         // expired deduplication keys
	overdue        time.Duration // of a deferred message
	idle           time.Duration // time without a new message
}

var standard = limits{
	check:          5 * time.Second,
	transaction:    5 * time.Minute,
	prepared:       5 * time.Minute,
	oldTransaction: time.Hour,
	clock:          time.Second,
	connections:    0.8,
	walBytes:       1 << 30,
	deadTuples:     10_000,
	slotAge:        100_000_000, // half of the server's default autovacuum_freeze_max_age
	expiredKeys:    1_000_000,   // as many as relays delete in one round
	overdue:        time.Minute,
	idle:           7 * 24 * time.Hour,
}

// target is a database to examine.
type target struct {
	Database
	limits limits
	now    func() time.Time
	tx     pgx.Tx // of the current check
}

func newTarget(d Database) *target { return &target{Database: d, limits: standard, now: time.Now} }

// check is a named check of a database.
type check struct {
	name string
	ask  func(context.Context, *target) ([]Finding, error)
}

// examine runs all checks that are possible: none without a connection, and only those of the
// server without the tables.
func (p *target) examine(ctx context.Context) []Finding {
	findings, ok := p.ask(ctx, check{"connection", askConnection})
	if !ok {
		return findings
	}
	more := func(checks []check) {
		for _, c := range checks {
			found, _ := p.ask(ctx, c)
			findings = append(findings, found...)
		}
	}
	more(serverChecks)
	schema, ok := p.ask(ctx, check{"schema", askSchema})
	findings = append(findings, schema...)
	if ok {
		more(schemaChecks)
		more(logChecks)
		more(feedChecks)
	}
	return findings
}

// ask runs a check with a time limit, and reports whether it found nothing. A failed check is a
// finding.
func (p *target) ask(ctx context.Context, c check) (findings []Finding, ok bool) {
	limited, cancel := context.WithTimeout(ctx, p.limits.check)
	defer cancel()
	options := pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadOnly}
	err := pgx.BeginTxFunc(limited, p.Pool, options, func(tx pgx.Tx) error {
		p.tx = tx
		// Use the indexes of the log whatever the statistics say.
		_, err := tx.Exec(limited, "SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL jit = off",
			pgx.QueryExecModeSimpleProtocol)
		if err == nil {
			findings, err = c.ask(limited, p)
		}
		return err
	})
	if err != nil {
		findings = append(findings, failure(c.name, err, p.limits.check))
	}
	if len(findings) == 0 {
		return []Finding{{Check: c.name, Severity: OK, Subject: p.Name, Finding: "no problems found"}}, true
	}
	for i := range findings {
		findings[i].Check, findings[i].Subject = c.name, p.Name
	}
	return findings, false
}

// failure returns the finding for a failed check.
func failure(name string, err error, limit time.Duration) Finding {
	var pg *pgconn.PgError
	switch {
	case name == "connection":
		return Finding{Severity: Problem, Finding: "the database cannot be used: " + oneLine(err),
			Why: "Messages can be neither enqueued nor delivered.", Fix: "psql 'ADDRESS' -c 'SELECT 1'"}
	case errors.As(err, &pg) && pg.Code == "42501": // insufficient privilege
		return Finding{Severity: Warning, Finding: "this user may not read this: " + pg.Message,
			Why: "Problems here remain undetected.", Fix: "GRANT pg_monitor TO CURRENT_USER, as an administrator; or run the doctor as the owner of the schema"}
	case errors.Is(err, context.DeadlineExceeded):
		return Finding{Severity: Warning, Finding: fmt.Sprintf("no answer within %v", limit),
			Why: "The server is overloaded, or a lock is held; relays may wait as long.",
			Fix: "SELECT pid, state, wait_event_type, query FROM pg_stat_activity ORDER BY xact_start"}
	}
	return Finding{Severity: Warning, Finding: "the check failed: " + oneLine(err), Why: "Problems here remain undetected."}
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// in inserts the schema's name into a statement.
func (p *target) in(sql string) string {
	return strings.ReplaceAll(sql, "@schema@", pgx.Identifier{p.Schema}.Sanitize())
}

// command returns a command line for the same database.
func (p *target) command(line string) string { return "postrider " + line + p.Flags }

// rows runs a query. The fields of T are the columns, in their order.
func rows[T any](ctx context.Context, p *target, sql string, args ...any) ([]T, error) {
	found, err := p.tx.Query(ctx, p.in(sql), append([]any{pgx.QueryExecModeExec}, args...)...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(found, pgx.RowToStructByPos[T])
}

// values runs a query with one column.
func values[T any](ctx context.Context, p *target, sql string, args ...any) ([]T, error) {
	found, err := p.tx.Query(ctx, p.in(sql), append([]any{pgx.QueryExecModeExec}, args...)...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(found, pgx.RowTo[T])
}

// value runs a query for one value.
func value[T any](ctx context.Context, p *target, sql string, args ...any) (T, error) {
	var v T
	err := p.tx.QueryRow(ctx, p.in(sql), append([]any{pgx.QueryExecModeExec}, args...)...).Scan(&v)
	return v, err
}

// age formats a duration.
func age(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes())
	case d < 48*time.Hour:
		return fmt.Sprintf("%.0f h", d.Hours())
	}
	return fmt.Sprintf("%.0f days", d.Hours()/24)
}

// size formats a number of bytes.
func size(bytes int64) string {
	switch {
	case bytes < 1<<20:
		return fmt.Sprintf("%d KB", bytes>>10)
	case bytes < 1<<30:
		return fmt.Sprintf("%d MB", bytes>>20)
	}
	return fmt.Sprintf("%.1f GB", float64(bytes)/(1<<30))
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
