package saga

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/saga"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// trip is the data of the sagas. Fails is the step that fails permanently.
type trip struct {
	Fails string `json:"fails,omitempty"`
	Paid  int    `json:"paid"`
	Extra int    `json:"extra"`
}

// prices maps steps to what they take from the customer's account.
var prices = map[string]int{"hotel": 10, "flight": 20, "car": 30, "insurance": 5, "payment": 35}

// world is a schema with an application's tables beside the sagas.
type world struct {
	dsn    string
	schema string
	pool   *pgxpool.Pool
	db     *postgres.DB
}

// newWorld creates the schema.
func newWorld(t *testing.T) *world {
	t.Helper()
	dsn := pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18")
	admin := pgtest.Pool(t, dsn)
	cfg := pgtest.Schema(t, admin, postgres.Layout{})
	w, err := openWorld(t.Context(), dsn, cfg.Schema)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.pool.Close)
	w.exec(t, `CREATE TABLE @.accounts (id text PRIMARY KEY, balance int NOT NULL)`)
	w.exec(t, `CREATE TABLE @.effects (id text, step text, undo boolean, amount int)`)
	w.exec(t, `CREATE INDEX ON @.effects (id)`)
	return w
}

// openWorld connects to an existing schema.
func openWorld(ctx context.Context, dsn, schema string) (*world, error) {
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = 30
	cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	// Only clients are killed, so commits need not reach the disk.
	cfg.ConnConfig.RuntimeParams["synchronous_commit"] = "off"
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	db, err := postgres.Open(pool, postgres.Config{Schema: schema})
	return &world{dsn, schema, pool, db}, err
}

func (w *world) in(sql string) string { return strings.ReplaceAll(sql, "@", w.schema) }

func (w *world) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := w.pool.Exec(t.Context(), w.in(sql), args...); err != nil {
		t.Fatal(err)
	}
}

func (w *world) number(t *testing.T, sql string, args ...any) (n int) {
	t.Helper()
	if err := w.pool.QueryRow(t.Context(), w.in(sql), args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// pays returns a step that books money, inserts a row and enqueues a message. It is not idempotent,
// so a repetition would be visible.
func (w *world) pays(name string) (action, compensation func(ctx context.Context, tx pgx.Tx, data *trip) error) {
	move := func(ctx context.Context, tx pgx.Tx, amount int, undo bool) error {
		id := strings.Split(saga.Key(ctx), "/")[1]
		if _, err := tx.Exec(ctx, w.in("UPDATE @.accounts SET balance = balance - $1 WHERE id = $2"), amount, id); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, w.in("INSERT INTO @.effects VALUES ($1, $2, $3, $4)"), id, name, undo, amount); err != nil {
			return err
		}
		what := "done"
		if undo {
			what = "undone"
		}
		return w.db.Outbox().Enqueue(ctx, tx, postrider.Event(name+"."+what, postrider.Aggregate{Type: "trip", ID: id}, amount))
	}
	return func(ctx context.Context, tx pgx.Tx, data *trip) error {
			if err := move(ctx, tx, prices[name], false); err != nil {
				return err
			}
			data.Paid += prices[name]
			if data.Fails == name {
				return postrider.Permanent(errors.New("no"))
			}
			return nil
		}, func(ctx context.Context, tx pgx.Tx, data *trip) error {
			data.Paid -= prices[name]
			return move(ctx, tx, -prices[name], true)
		}
}

var quick = retry.Policy{Attempts: 50, First: time.Millisecond, Most: 20 * time.Millisecond}

// open opens the account of a saga.
func (w *world) open(ctx context.Context, tx pgx.Tx, id string) error {
	_, err := tx.Exec(ctx, w.in("INSERT INTO @.accounts VALUES ($1, 100)"), id)
	return err
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }
