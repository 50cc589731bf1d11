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

// limits are from where on something is worth a word.
type limits struct {
	check          time.Duration // longest check
	transaction    time.Duration // age of an open transaction,
	prepared       time.Duration // or of a prepared one,
	oldTransaction time.Duration // and from where on it is a problem
	clock          time.Duration // difference between clocks
	connections    float64       // share of max_connections
	walBytes       int64         // that a replication slot keeps
	deadTuples     int64         // of a table, and more than half of it
	slotAge        int64         // transactions since a slot was last frozen
	expiredKeys    int64         // deduplication keys whose time is over
	overdue        time.Duration // of a message that was deferred
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
	slotAge:        100_000_000, // half of what the server waits for by default
	expiredKeys:    1_000_000,   // what relays delete in one round
	overdue:        time.Minute,
	idle:           7 * 24 * time.Hour,
}

// patient is a database under examination.
type patient struct {
	Database
	limits limits
	now    func() time.Time
	tx     pgx.Tx // of the check that runs
}

func newPatient(d Database) *patient { return &patient{Database: d, limits: standard, now: time.Now} }

// check is one question to a database.
type check struct {
	name string
	ask  func(context.Context, *patient) ([]Finding, error)
}

// examine asks everything that can be asked: without a connection nothing, without the tables little.
func (p *patient) examine(ctx context.Context) []Finding {
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

// ask runs one check, within its time, and reports whether it found nothing. That a check cannot be made is a finding.
func (p *patient) ask(ctx context.Context, c check) (findings []Finding, ok bool) {
	limited, cancel := context.WithTimeout(ctx, p.limits.check)
	defer cancel()
	options := pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadOnly}
	err := pgx.BeginTxFunc(limited, p.Pool, options, func(tx pgx.Tx) error {
		p.tx = tx
		// The log is asked by its indexes, whatever the statistics say.
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
		return []Finding{{Check: c.name, Severity: OK, Subject: p.Name, Finding: "nothing found"}}, true
	}
	for i := range findings {
		findings[i].Check, findings[i].Subject = c.name, p.Name
	}
	return findings, false
}

// failure is the finding that a check could not be made.
func failure(name string, err error, limit time.Duration) Finding {
	var pg *pgconn.PgError
	switch {
	case name == "connection":
		return Finding{Severity: Problem, Finding: "the database cannot be used: " + oneLine(err),
			Why: "Nothing can be enqueued or carried.", Fix: "psql 'ADDRESS' -c 'SELECT 1'"}
	case errors.As(err, &pg) && pg.Code == "42501": // insufficient privilege
		return Finding{Severity: Warning, Finding: "this user may not look: " + pg.Message,
			Why: "What is wrong here stays hidden.", Fix: "GRANT pg_monitor TO CURRENT_USER, as an administrator; or ask as the owner of the schema"}
	case errors.Is(err, context.DeadlineExceeded):
		return Finding{Severity: Warning, Finding: fmt.Sprintf("no answer within %v", limit),
			Why: "The server is overloaded, or a lock is held; relays may wait as long.",
			Fix: "SELECT pid, state, wait_event_type, query FROM pg_stat_activity ORDER BY xact_start"}
	}
	return Finding{Severity: Warning, Finding: "could not be checked: " + oneLine(err), Why: "What is wrong here stays hidden."}
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// in puts the schema's name into a statement.
func (p *patient) in(sql string) string {
	return strings.ReplaceAll(sql, "@schema@", pgx.Identifier{p.Schema}.Sanitize())
}

// command is a command line that works on the same database.
func (p *patient) command(line string) string { return "postrider " + line + p.Flags }

// rows asks the database. The fields of T are the columns, in their order.
func rows[T any](ctx context.Context, p *patient, sql string, args ...any) ([]T, error) {
	found, err := p.tx.Query(ctx, p.in(sql), append([]any{pgx.QueryExecModeExec}, args...)...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(found, pgx.RowToStructByPos[T])
}

// values is rows of one column.
func values[T any](ctx context.Context, p *patient, sql string, args ...any) ([]T, error) {
	found, err := p.tx.Query(ctx, p.in(sql), append([]any{pgx.QueryExecModeExec}, args...)...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(found, pgx.RowTo[T])
}

// value asks for one value.
func value[T any](ctx context.Context, p *patient, sql string, args ...any) (T, error) {
	var v T
	err := p.tx.QueryRow(ctx, p.in(sql), append([]any{pgx.QueryExecModeExec}, args...)...).Scan(&v)
	return v, err
}

// age is a time span for people.
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

// size is a number of bytes for people.
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
