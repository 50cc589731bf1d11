package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/postrider/postrider/internal/retrying"
	"github.com/postrider/postrider/retry"
)

// mark identifies a transaction. It is taken before the COMMIT.
type mark struct {
	xid string // empty: nothing was written
	server
	asked float64 // time of the server's clock
}

// server identifies one run of a server: from its start, or its recovery after a crash, to the
// next.
type server struct {
	generation string  // of the schema's table generation; empty: unknown
	started    float64 // start of the postmaster, which survives some crashes
}

// questions holds the statements that fit what the database offers.
type questions struct {
	system         int64 // the identifier of the cluster
	server               // read some time before the transactions that carry its mark
	before, status string
}

// prepare finds out whether the schema can detect a crash of the server, and makes sure that it
// can. It does so once, and again after each failure: a generation that was read before a
// transaction, and is the same afterwards, was the same all the time.
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
	// Keep it minimal: every transaction waits for it.
	asks.before = `SELECT coalesce(pg_current_xact_id_if_assigned()::text, ''),
		date_part('epoch', pg_postmaster_start_time()), date_part('epoch', clock_timestamp())`
	// A session that is older than the mark proves that the server did not crash since: a crash
	// would have ended it. Transaction IDs are assigned in order. So an ID above one that we get
	// now was never assigned by this server, or a crash took it back; pg_xact_status would refuse
	// it.
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
	status  string // result of pg_xact_status; empty: too old for the server to know
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

// conclude draws a conclusion from one answer. If known is false, the reason may pass and the
// caller asks again.
//
// A crash can take back transaction IDs that never reached the disk, and the server then assigns
// them to other transactions. So "committed" counts only on a server that has not crashed since the
// mark was taken. "aborted" always counts: if our COMMIT had succeeded, it would be on disk, the
// server would not have assigned its ID again, and the answer would be "committed".
func (m mark) conclude(f fate, system int64) (committed, known bool, reason error) {
	same := f.server == m.server
	if m.generation == "" {
		same = f.started == m.started && f.witness
	}
	switch {
	case f.system != system:
		return false, true, errMoved
	case f.standby:
		return false, false, errStandby // a standby may lag, and may be about to be promoted
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

// askAgain is the backoff between questions about the outcome of a COMMIT.
var askAgain = retry.Policy{First: 5 * time.Millisecond, Most: 500 * time.Millisecond}

// abandonedAfter is how long a session waits for its next statement before we conclude that the
// COMMIT will not reach it.
const abandonedAfter = time.Second

// resolve finds out whether a transaction has committed. It returns an error if it cannot.
func (t *runner[Tx]) resolve(ctx context.Context, asks *questions, m mark) (committed bool, doubt error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.cfg.Transactor.ResolveTimeout)
	defer cancel()
	for n := 1; ; n++ {
		var f fate
		err := t.db.row(ctx, asks.status, []any{m.xid, m.asked}, f.targets()...)
		if err == nil {
			var known bool
			if committed, known, err = m.conclude(f, asks.system); known {
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

// abandon terminates a session that still has the transaction open and waits for a statement: its
// connection broke without the server noticing. Otherwise the session would keep its locks, and the
// outcome would stay open, until the server's own timeouts. Failure to terminate it, for instance
// for lack of a privilege, is ignored.
func (t *runner[Tx]) abandon(ctx context.Context, m mark) {
	_, _ = t.db.exec(ctx, `
		SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE backend_xid = $1::text::xid8::xid AND state = 'idle in transaction'
		  AND clock_timestamp() > state_change + $2::float8 * interval '1 second'`,
		m.xid, abandonedAfter.Seconds())
}
