package postgres_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/reconcile"
	"github.com/postrider/postrider/reconcile/reconciletest"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// plainTx is a transactor that never retries.
type plainTx struct{ pool *pgxpool.Pool }

func (p plainTx) Do(ctx context.Context, f func(context.Context, pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error { return f(ctx, tx) })
}

type plainSQLTx struct{ db *sql.DB }

func (p plainSQLTx) Do(ctx context.Context, f func(context.Context, *sql.Tx) error) error {
	tx, err := p.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := f(ctx, tx); err != nil {
		return err
	}
	return tx.Commit()
}

func TestReconcilers(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, testReconcilers)
}

func TestReconcilersThroughPooler(t *testing.T) {
	t.Parallel()
	pgtest.EachPooled(t, testReconcilers)
}

func testReconcilers(t *testing.T, dsn string) {
	pool := pgtest.Pool(t, dsn)
	t.Run("pgx", func(t *testing.T) {
		store := must(postgres.Open(pool, pgtest.Schema(t, pool, postgres.Layout{})))(t).Reconciliations()
		reconciletest.Run(t, func(*testing.T) reconciletest.Harness[pgx.Tx] {
			return reconciletest.Harness[pgx.Tx]{Store: store, DB: plainTx{pool}}
		})
	})
	t.Run("sql", func(t *testing.T) {
		db := stdlib.OpenDBFromPool(pool)
		t.Cleanup(func() { _ = db.Close() })
		store := must(postgres.OpenSQL(db, pgtest.Schema(t, pool, postgres.Layout{})))(t).Reconciliations()
		reconciletest.Run(t, func(*testing.T) reconciletest.Harness[*sql.Tx] {
			return reconciletest.Harness[*sql.Tx]{Store: store, DB: plainSQLTx{db}}
		})
	})
}

// TestReconcilerQuery verifies that rows become messages, with either driver, and that a query
// cannot write.
func TestReconcilerQuery(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		pool := pgtest.Pool(t, dsn)
		schema := pgtest.Schema(t, pool, postgres.Layout{}).Schema
		exec := func(statement string) {
			t.Helper()
			if _, err := pool.Exec(t.Context(), strings.ReplaceAll(statement, "@", schema)); err != nil {
				t.Fatal(err)
			}
		}
		exec("CREATE TABLE @.courses (id bigint, at timestamptz, note text)")
		exec("INSERT INTO @.courses VALUES (7, '2026-01-02 03:04:05Z', 'a \"b\"'), (8, '2027-01-01Z', '')")
		since, until := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
		q := postgres.ReconcilerQuery{
			SQL: `SELECT id, id AS aggregate_id, json_build_object('note', note) AS payload, at AS occurred_at, 'now' AS topic,
				json_build_object('h', note) AS headers, 3 AS priority, NULL AS key
				FROM ` + schema + `.courses WHERE at >= $1 AND at < $2; -- the end`,
			Type: "course.created", AggregateType: "course", DedupKey: "course:{id}:v1", Timeout: time.Second,
		}
		q.SQL = strings.TrimSuffix(q.SQL, "; -- the end") + " -- the end"
		find, err := q.Find()
		if err != nil {
			t.Fatal(err)
		}
		sqlFind, err := q.SQLFind()
		if err != nil {
			t.Fatal(err)
		}
		db := stdlib.OpenDBFromPool(pool)
		defer db.Close()
		var byPgx, bySQL []postrider.Message
		err = plainTx{pool}.Do(t.Context(), func(ctx context.Context, tx pgx.Tx) (err error) {
			if byPgx, err = find(ctx, tx, since, until, 10); err != nil {
				return err
			}
			_, err = tx.Exec(ctx, "INSERT INTO "+schema+".courses VALUES (9, now(), '')") // writing is allowed again
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		err = plainSQLTx{db}.Do(t.Context(), func(ctx context.Context, tx *sql.Tx) (err error) {
			bySQL, err = sqlFind(ctx, tx, since, until, 10)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for driver, found := range map[string][]postrider.Message{"pgx": byPgx, "sql": bySQL} {
			if len(found) != 1 {
				t.Fatalf("%s: found %+v", driver, found)
			}
			m := found[0]
			if m.DedupKey != "course:7:v1" || m.Type != "course.created" || m.AggregateID != "7" || m.OrderKey() != "course/7" || m.Topic != "now" ||
				string(m.Payload) != `{"note" : "a \"b\""}` || m.ContentType != "application/json" || m.Headers["h"] != `a "b"` ||
				m.Priority != 3 || !m.OccurredAt.Equal(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)) {
				t.Errorf("%s: %+v", driver, m)
			}
		}
		for name, bad := range map[string]struct{ sql, key, want string }{
			"writes":         {"WITH x AS (DELETE FROM @.courses RETURNING *) SELECT * FROM x", "{id}", "top level"},
			"functionWrites": {"SELECT nextval('@.message_seq') AS id", "{id}", "read-only transaction"},
			"unknownColumn":  {"SELECT 1 AS id, 2 AS agregate_id", "{id}", "agregate_id"}, //nolint:misspell // as a user may
			"noColumn":       {"SELECT 1 AS aggregate_id", "{id}", `no column "id"`},
			"two":            {"SELECT 1 AS id; SELECT 2 AS id", "{id}", "syntax error"},
			"slow":           {"SELECT pg_sleep(10)::text AS id", "{id}", "statement timeout"},
		} {
			find, err := postgres.ReconcilerQuery{SQL: strings.ReplaceAll(bad.sql, "@", schema), Type: "t", DedupKey: bad.key, Timeout: 50 * time.Millisecond}.Find()
			if err != nil {
				t.Fatal(err)
			}
			err = plainTx{pool}.Do(t.Context(), func(ctx context.Context, tx pgx.Tx) error {
				_, err := find(ctx, tx, since, until, 10)
				return err
			})
			if err == nil || !strings.Contains(err.Error(), bad.want) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	for _, key := range []string{"{", "}", "a{}", "{a{b}", "constant"} {
		if err := (postgres.ReconcilerQuery{SQL: "SELECT 1", DedupKey: key}).Validate(); err == nil {
			t.Errorf("dedup key %q was accepted", key)
		}
	}
}

// TestUnreceived verifies that messages a consumer has not recorded are sent again, a limited
// number of times, and no others.
func TestUnreceived(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, postgres.Layout{})
		sent := h.enqueue(5)
		h.deliverAll("f")
		log := h.db.SentLog("f", "reconciler")
		store := h.db.Reconciliations()
		// The consumer has recorded all but two.
		h.exec("INSERT INTO @.consumers (name) VALUES ('billing'), ('other')")
		for i, id := range sent {
			consumer := "billing"
			if i == 1 || i == 3 {
				consumer = "other"
			}
			h.exec("INSERT INTO @.inbox_strays (consumer, id) SELECT c.n, '" + id.String() + "' FROM @.consumers c WHERE c.name = '" + consumer + "'")
		}
		inbox := h.db.Receipts()
		db := stdlib.OpenDBFromPool(h.pool)
		defer db.Close()
		byOther := must(postgres.OpenSQL(db, h.cfg))(t).Receipts()
		if missing, err := byOther.Missing(t.Context(), "other", sent); err != nil || len(missing) != 3 {
			t.Errorf("by database/sql: %v, %v", missing, err)
		}
		p, err := reconcile.New(store, plainTx{h.pool}, nil, reconcile.Config{}, reconcile.Job[pgx.Tx]{
			Name: "received", Grace: time.Nanosecond, Check: reconcile.Unreceived(log, inbox, "billing", nil),
			Again: reconcile.Again{Max: 2, After: time.Nanosecond}, Rate: -1,
		})
		if err != nil {
			t.Fatal(err)
		}
		for round, want := range []int64{2, 2, 0} {
			run, err := p.RunNow(t.Context(), "received", reconcile.Options{})
			if err != nil || run.Found != 2 || run.Fixed != want {
				t.Fatalf("round %d: %+v, %v", round, run, err)
			}
			if n := h.deferred(t); n != want {
				t.Errorf("round %d: %d messages are deferred", round, n)
			}
			h.exec("DELETE FROM @.deferred")
		}
		if err := h.db.Admin().RecordReconciler(t.Context(), admin.By{Who: "ann", Why: "test"}, "received", reconcile.Counts{Found: 2, Fixed: 2}); err != nil {
			t.Fatal(err)
		}
		d := h.db.Admin()
		entries, err := d.Audit(t.Context(), "", 0, 10)
		if err != nil || len(entries) != 4 || entries[0].Action != "reconciler" || entries[1].Action != "resend" || entries[1].Count != 2 ||
			entries[1].Who != "reconciler" || entries[1].Why != "not received by billing" {
			t.Errorf("recorded: %+v, %v", entries, err)
		}
	})
}

// TestReconcilerRole verifies that a consumer can run reconcilers, and can neither resend messages
// of the log nor touch the audit log.
func TestReconcilerRole(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, postgres.Layout{})
		consumer := h.as(dsn, "consumer")
		store := consumer.db.Reconciliations()
		p, err := reconcile.New(store, plainTx{consumer.pool}, nil, reconcile.Config{}, reconcile.Job[pgx.Tx]{
			Name: "job", Check: func(ctx context.Context, r *reconcile.Round) error {
				return r.Mend(ctx, []postrider.Message{{ID: postrider.NewID()}}, func(context.Context, []postrider.Message) error { return nil })
			}})
		if err != nil {
			t.Fatal(err)
		}
		if run, err := p.RunNow(t.Context(), "job", reconcile.Options{}); err != nil || run.Fixed != 1 {
			t.Errorf("%+v, %v", run, err)
		}
		if states, err := p.Jobs(t.Context()); err != nil || len(states) != 1 || states[0].Total.Fixed != 1 {
			t.Errorf("%+v, %v", states, err)
		}
		if err := consumer.db.Admin().RecordReconciler(t.Context(), admin.By{Who: "ann"}, "job", reconcile.Counts{}); err != nil {
			t.Error(err)
		}
		consumer.mustNotBeAllowed(
			"SELECT @.resend_for('x', 'y', 'f', '[1]')",
			"SELECT @.record('x', 'y', 'z', NULL, 0, NULL)",
			"SELECT * FROM @.audit",
			"DELETE FROM @.messages",
		)
	})
}

func (h *house) deferred(t *testing.T) (n int64) {
	t.Helper()
	if err := h.pool.QueryRow(t.Context(), "SELECT count(*) FROM "+h.cfg.Schema+".deferred WHERE status = 'retry'").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
