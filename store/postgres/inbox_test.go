package postgres_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/inbox/inboxtest"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

func TestInbox(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		t.Run("pgx", func(t *testing.T) { runInboxPgx(t, dsn) })
		t.Run("sql", func(t *testing.T) { runInboxSQL(t, dsn) })
	})
}

// TestInboxThroughPooler tests one driver per server, to save time.
func TestInboxThroughPooler(t *testing.T) {
	t.Parallel()
	runs := []func(*testing.T, string){runInboxPgx, runInboxSQL}
	n := 0
	pgtest.EachPooled(t, func(t *testing.T, dsn string) {
		runs[n%2](t, dsn)
		n++
	})
}

func runInboxPgx(t *testing.T, dsn string) {
	y := newInboxYard(t, dsn, postgres.Layout{})
	inboxtest.Run(t, func(t testing.TB) inboxtest.Subject[pgx.Tx] { y.clear(); return y.pgx(t) })
}

func runInboxSQL(t *testing.T, dsn string) {
	y := newInboxYard(t, dsn, postgres.Layout{})
	inboxtest.Run(t, func(t testing.TB) inboxtest.Subject[*sql.Tx] { y.clear(); return y.sql(t) })
}

func TestInboxWindow(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		inboxtest.RunWindow(t, newInboxYard(t, dsn, postgres.Layout{InboxWindow: 7 * time.Second}).pgx(t))
	})
}

// inboxYard is a schema with a table for effects.
type inboxYard struct {
	t      *testing.T
	pool   *pgxpool.Pool
	cfg    postgres.Config
	db     *postgres.DB
	window time.Duration
	marks  string
}

func newInboxYard(t *testing.T, dsn string, layout postgres.Layout) *inboxYard {
	pool := pgtest.Pool(t, dsn)
	cfg := pgtest.Schema(t, pool, layout)
	y := &inboxYard{t, pool, cfg, must(postgres.Open(pool, cfg))(t), layout.InboxWindow, pgx.Identifier{cfg.Schema, "marks"}.Sanitize()}
	y.exec("CREATE TABLE " + y.marks + " (n bigserial, text text)")
	return y
}

func (y *inboxYard) exec(statement string) {
	y.t.Helper()
	if _, err := y.pool.Exec(y.t.Context(), statement); err != nil {
		y.t.Fatal(err)
	}
}

// clear makes the schema as good as new, which is faster than creating one.
func (y *inboxYard) clear() {
	var all string
	for _, table := range []string{"marks", "inbox", "inbox_strays", "deferred", "consumers"} {
		all += "DELETE FROM " + pgx.Identifier{y.cfg.Schema, table}.Sanitize() + ";"
	}
	if _, err := y.pool.Exec(y.t.Context(), all, pgx.QueryExecModeSimpleProtocol); err != nil {
		y.t.Fatal(err)
	}
}

func (y *inboxYard) pgx(t testing.TB) inboxtest.Subject[pgx.Tx] {
	s := subjectOf(t, y, y.db.Inbox())
	s.Do = func(ctx context.Context, f func(context.Context, pgx.Tx) error) error {
		return pgx.BeginFunc(ctx, y.pool, func(tx pgx.Tx) error { return f(ctx, tx) })
	}
	s.Mark = func(ctx context.Context, tx pgx.Tx, text string) error {
		_, err := tx.Exec(ctx, "INSERT INTO "+y.marks+" (text) VALUES ($1)", text)
		return err
	}
	return s
}

func (y *inboxYard) sql(t testing.TB) inboxtest.Subject[*sql.Tx] {
	db := stdlib.OpenDBFromPool(y.pool)
	t.Cleanup(func() { _ = db.Close() })
	s := subjectOf(t, y, must(postgres.OpenSQL(db, y.cfg))(t).Inbox())
	s.Do = func(ctx context.Context, f func(context.Context, *sql.Tx) error) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // a no-op after the commit
		if err := f(ctx, tx); err != nil {
			return err
		}
		return tx.Commit()
	}
	s.Mark = func(ctx context.Context, tx *sql.Tx, text string) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO "+y.marks+" (text) VALUES ($1)", text)
		return err
	}
	return s
}

// subjectOf is what both drivers have in common.
func subjectOf[Tx any](t testing.TB, y *inboxYard, store inbox.Store[Tx]) inboxtest.Subject[Tx] {
	operator := y.db.Admin()
	return inboxtest.Subject[Tx]{
		Store:       store,
		DeadLetters: operator,
		Gauges:      operator,
		Window:      y.window,
		Marks: func(ctx context.Context) []string {
			rows, err := y.pool.Query(ctx, "SELECT text FROM "+y.marks+" ORDER BY n")
			if err != nil {
				t.Fatal(err)
			}
			all, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if err != nil {
				t.Fatal(err)
			}
			return all
		},
	}
}
