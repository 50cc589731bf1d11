package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/postrider/postrider/internal/retrying"
	"github.com/postrider/postrider/retry"
)

// mark is what is noted of a transaction before its COMMIT.
type mark struct {
	xid string // empty: nothing was written
	server
	asked float64 // when, by the server's clock
}

// server is one life of a server: from its start, or its recovery after a crash, to the next.
type server struct {
	generation string  // see migration 001; empty: unknown
	started    float64 // the postmaster, which outlives some crashes
}

// questions are the statements that fit what the database offers.
type questions struct {
	system         int64 // the identifier of the cluster
	server               // as it was some time before the transactions that are marked with it
	before, status string
}

// prepare finds out whether the schema can tell that the server has crashed, and makes sure that it can. That is done once and
// after each trouble: a generation that was read before a transaction, and is the same after it, was the same all the time.
func (t *runner[Tx]) prepare(ctx context.Context) (*questions, error) {
	if asks := t.questions.Load(); asks != nil || t.cfg.Transactor.LeaveUncertain {
		return asks, nil
	}
	var asks questions
	var readable, writable bool
	if err := t.db.row(ctx, `
		SELECT s.system_identifier, date_part('epoch', pg_postmaster_start_time()),
		       coalesce(has_schema_privilege(c.relnamespace, 'USAGE') AND has_table_privilege(c.oid, 'SELECT'), false),
		       coalesce(has_table_privilege(c.oid, 'INSERT') AND NOT pg_is_in_recovery(), false)
		FROM pg_control_system() s LEFT JOIN pg_class c
		  ON c.relname = 'generation' AND c.relnamespace = (SELECT n.oid FROM pg_namespace n WHERE n.nspname = $1)`,
		[]any{t.cfg.Schema}, &asks.system, &asks.started, &readable, &writable); err != nil {
		return nil, err
	}
	if readable && writable {
		if _, err := t.db.exec(ctx, t.cfg.in("INSERT INTO @schema@.generation DEFAULT VALUES ON CONFLICT DO NOTHING")); err != nil {
			return nil, err
		}
	}
	generation := "''"
	if readable {
		generation = t.cfg.in("coalesce((SELECT g.id::text FROM @schema@.generation g), '')")
		if err := t.db.row(ctx, "SELECT "+generation, nil, &asks.generation); err != nil {
			return nil, err
		}
	}
	// As little as possible: every transaction waits for it.
	asks.before = `SELECT coalesce(pg_current_xact_id_if_assigned()::text, ''),
		date_part('epoch', pg_postmaster_start_time()), date_part('epoch', clock_timestamp())`
	// A session that was there before the mark was set is a witness: a crash would have ended it. Numbers are handed out in
	// order, so one behind a number that we get now has never been handed out by this server, or was taken back by a crash;
	// pg_xact_status would refuse it.
	asks.status = `
		SELECT s.system_identifier, pg_is_in_recovery(), ` + generation + `, date_part('epoch', pg_postmaster_start_time()),
		       EXISTS (SELECT FROM pg_stat_activity WHERE backend_start < to_timestamp($2::float8)),
		       CASE WHEN pg_is_in_recovery() THEN ''
		            WHEN $1::text::xid8 < pg_snapshot_xmax(pg_current_snapshot()) THEN coalesce(pg_xact_status($1::text::xid8), '')
		            WHEN $1::text::xid8 < pg_current_xact_id() THEN 'in progress'
		            ELSE 'aborted' END
		FROM pg_control_system() s`
	t.questions.Store(&asks)
	return &asks, nil
}

func (q *questions) ask(ctx context.Context, in statements) (m mark, err error) {
	if err = in.row(ctx, q.before, nil, &m.xid, &m.started, &m.asked); err == nil && m.started == q.started {
		m.generation = q.generation
	}
	return m, err
}

// fate is what the server says about a transaction.
type fate struct {
	system  int64
	standby bool
	server
	witness bool   // a session is alive that is older than the mark
	status  string // as pg_xact_status says; empty: it is too old to know
}

func (f *fate) targets() []any {
	return []any{&f.system, &f.standby, &f.generation, &f.started, &f.witness, &f.status}
}

var (
	errForgotten = errors.New("the server no longer knows it")
	errMoved     = errors.New("another server has taken over, or it was restored")
	errCrashed   = errors.New("the server may have crashed, and its number may have been given to another transaction")
	errStandby   = errors.New("the server is a standby")
	errOpen      = errors.New("it is still in progress")
)

// judge concludes from one answer. Without a verdict it returns the reason, which may pass.
//
// A crash can take back transaction numbers that never reached the disk, and others get them. So "committed" counts only on a
// server that has not crashed since the mark was set. "aborted" counts in any case: had our COMMIT been made, it would be on
// disk, its number would not have been given to anybody else, and the answer would be "committed".
func (m mark) judge(f fate, system int64) (committed, verdict bool, reason error) {
	same := f.server == m.server
	if m.generation == "" {
		same = f.started == m.started && f.witness
	}
	switch {
	case f.system != system:
		return false, true, errMoved
	case f.standby:
		return false, false, errStandby // a standby may be behind, and may be about to be promoted
	case f.status == "committed" && same:
		return true, true, nil
	case f.status == "committed":
		return false, true, errCrashed
	case f.status == "aborted":
		return false, true, nil
	case f.status == "in progress":
		return false, false, errOpen
	default:
		return false, true, errForgotten
	}
}

// askAgain is how often the server is asked what became of a COMMIT.
var askAgain = retry.Policy{First: 5 * time.Millisecond, Most: 500 * time.Millisecond}

// abandonedAfter is when a session that waits for its next statement is not going to get the COMMIT any more.
const abandonedAfter = time.Second

// resolve finds out whether a transaction has committed. It returns the doubt that is left.
func (t *runner[Tx]) resolve(ctx context.Context, asks *questions, m mark) (committed bool, doubt error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.cfg.Transactor.ResolveTimeout)
	defer cancel()
	for n := 1; ; n++ {
		var f fate
		err := t.db.row(ctx, asks.status, []any{m.xid, m.asked}, f.targets()...)
		if err == nil {
			var verdict bool
			if committed, verdict, err = m.judge(f, asks.system); verdict {
				return committed, err
			}
		}
		if errors.Is(err, errOpen) {
			t.abandon(ctx, m)
		}
		if !retrying.Pause(ctx, askAgain, n) {
			return false, fmt.Errorf("asked %d times in %v: %w", n, t.cfg.Transactor.ResolveTimeout, err)
		}
	}
}

// abandon ends a session that still has the transaction open and waits for a statement: its connection is lost without the
// server knowing. It would hold its locks, and keep us in doubt, until the server's own timeouts. That it is not possible, for
// instance for lack of a privilege, changes nothing.
func (t *runner[Tx]) abandon(ctx context.Context, m mark) {
	_, _ = t.db.exec(ctx, `
		SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE backend_xid = $1::text::xid8::xid AND state = 'idle in transaction'
		  AND clock_timestamp() > state_change + $2::float8 * interval '1 second'`,
		m.xid, abandonedAfter.Seconds())
}
