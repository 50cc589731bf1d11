package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
	"github.com/postrider/postrider/store/transactor"
	"github.com/postrider/postrider/store/transactor/transactortest"
)

func TestTransactor(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) { runTransactorSuite(t, dsn, nil) })
}

func TestTransactorThroughPooler(t *testing.T) {
	t.Parallel()
	pgtest.EachPooled(t, func(t *testing.T, dsn string) { runTransactorSuite(t, dsn, nil) })
}

// The transactor does not need its schema: an in-memory outbox works without it.
func TestTransactorVariants(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*postgres.Config){
		"NoSchema":       func(c *postgres.Config) { c.Schema = "not_there" },
		"LeaveUncertain": func(c *postgres.Config) { c.Transactor.LeaveUncertain = true },
		"Serializable": func(c *postgres.Config) {
			c.Transactor.Isolation, c.Transactor.Retry.Attempts = sql.LevelSerializable, 50
		},
	} {
		t.Run(name, func(t *testing.T) {
			runTransactorSuite(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"), change)
		})
	}
}

func runTransactorSuite(t *testing.T, dsn string, change func(*postgres.Config)) {
	h := newHouse(t, dsn, postgres.Layout{Shards: 1})
	conflict := &pgconn.PgError{Severity: "ERROR", Code: "40001", Message: "could not serialize access"}
	cfg := h.cfg
	cfg.Transactor.Retry = retry.Policy{First: time.Millisecond, Most: 5 * time.Millisecond}
	if change != nil {
		change(&cfg)
	}
	t.Run("pgx", func(t *testing.T) {
		transactor := must(postgres.Open(h.pool, cfg))(t).Transactor()
		transactortest.Run(t, transactortest.Harness[pgx.Tx]{Transactor: transactor, Outbox: h.outbox, Store: h.store, Conflict: conflict})
	})
	t.Run("sql", func(t *testing.T) {
		db := stdlib.OpenDBFromPool(h.pool)
		t.Cleanup(func() { db.Close() })
		transactor := must(postgres.OpenSQL(db, cfg))(t).Transactor()
		outbox := must(postgres.OpenSQL(db, h.cfg))(t).Outbox() // needs the schema
		transactortest.Run(t, transactortest.Harness[*sql.Tx]{Transactor: transactor, Outbox: outbox, Store: h.store, Conflict: conflict})
	})
}

// must turns a value and an error into a function that ends the test without the value.
func must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func newAccounts(t *testing.T) *house {
	t.Helper()
	h := newHouse(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"), postgres.Layout{Shards: 1})
	h.exec("CREATE TABLE @.accounts (id int UNIQUE DEFERRABLE INITIALLY DEFERRED, balance int)")
	return h
}

func (h *house) number(sql string) (n int) {
	h.t.Helper()
	if err := h.pool.QueryRow(h.t.Context(), h.in(sql)).Scan(&n); err != nil {
		h.t.Fatal(err)
	}
	return n
}

func (h *house) transactor(c transactor.Config) postrider.Transactor[pgx.Tx] {
	h.t.Helper()
	cfg := h.cfg
	cfg.Transactor = c
	return must(postgres.Open(h.pool, cfg))(h.t).Transactor()
}

// Two transactions that read what the other writes cannot both commit: one runs again, and then
// sees the other.
func TestSerializationFailureIsRepeated(t *testing.T) {
	t.Parallel()
	h := newAccounts(t)
	h.exec("INSERT INTO @.accounts VALUES (1, 50), (2, 50)")
	tr := h.transactor(transactor.Config{Isolation: sql.LevelSerializable})
	both := make(chan struct{}, 2)
	runs := make(chan int, 10)
	withdraw := func(id int) error {
		first := true
		return tr.Do(t.Context(), func(ctx context.Context, tx pgx.Tx) error {
			runs <- id
			var sum int
			if err := tx.QueryRow(ctx, h.in("SELECT sum(balance) FROM @.accounts")).Scan(&sum); err != nil {
				return err
			}
			if first { // both read before one writes
				first = false
				both <- struct{}{}
				for len(both) < 2 {
					time.Sleep(time.Millisecond)
				}
			}
			if sum < 100 {
				return nil // the rule: together they keep 50
			}
			_, err := tx.Exec(ctx, h.in("UPDATE @.accounts SET balance = balance - 50 WHERE id = $1"), id)
			return err
		})
	}
	other := make(chan error, 1)
	go func() { other <- withdraw(2) }()
	if err := errors.Join(withdraw(1), <-other); err != nil {
		t.Error(err)
	}
	if sum := h.number("SELECT sum(balance) FROM @.accounts"); sum != 50 || len(runs) < 3 { // the server may detect false conflicts
		t.Errorf("together they keep %d after %d runs, want 50 after at least 3", sum, len(runs))
	}
}

func TestDeadlockIsRepeated(t *testing.T) {
	t.Parallel()
	h := newAccounts(t)
	h.exec("INSERT INTO @.accounts VALUES (1, 0), (2, 0)")
	tr := h.db.Transactor()
	both := make(chan struct{}, 2)
	move := func(from, to int) error {
		return tr.Do(t.Context(), func(ctx context.Context, tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, h.in("UPDATE @.accounts SET balance = balance - 1 WHERE id = $1"), from); err != nil {
				return err
			}
			select {
			case both <- struct{}{}:
				for len(both) < 2 {
					time.Sleep(time.Millisecond)
				}
			default: // run again
			}
			_, err := tx.Exec(ctx, h.in("UPDATE @.accounts SET balance = balance + 1 WHERE id = $1"), to)
			return err
		})
	}
	other := make(chan error, 1)
	go func() { other <- move(1, 2) }()
	if err := errors.Join(move(2, 1), <-other); err != nil {
		t.Error(err)
	}
	if n := h.number("SELECT count(*) FROM @.accounts WHERE balance = 0"); n != 2 {
		t.Errorf("%d accounts are back at 0, want 2", n)
	}
}

// If the server refuses the COMMIT, the error is permanent and the function does not run again.
func TestRefusedCommit(t *testing.T) {
	t.Parallel()
	h := newAccounts(t)
	h.exec("INSERT INTO @.accounts VALUES (1, 0)")
	for name, f := range map[string]func(ctx context.Context, tx pgx.Tx) error{
		"deferred constraint": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, h.in("INSERT INTO @.accounts VALUES (1, 7)"))
			return err
		},
		"error that the function kept to itself": func(ctx context.Context, tx pgx.Tx) error {
			_, _ = tx.Exec(ctx, h.in("INSERT INTO @.accounts VALUES (7, 7)"))
			_, _ = tx.Exec(ctx, "SELECT 1/0")
			return nil
		},
		"rolled back by the function": func(ctx context.Context, tx pgx.Tx) error {
			_, _ = tx.Exec(ctx, h.in("INSERT INTO @.accounts VALUES (7, 7)"))
			return tx.Rollback(ctx)
		},
	} {
		for _, uncertain := range []bool{false, true} {
			runs := 0
			err := h.transactor(transactor.Config{LeaveUncertain: uncertain}).Do(t.Context(),
				func(ctx context.Context, tx pgx.Tx) error {
					runs++
					postrider.AfterCommit(ctx, func() { t.Errorf("%s: AfterCommit was called", name) })
					return f(ctx, tx)
				})
			if err == nil || errors.Is(err, postrider.ErrUncertain) || runs != 1 {
				t.Errorf("%s: got %v after %d runs", name, err, runs)
			}
		}
	}
	if n := h.number("SELECT count(*) FROM @.accounts"); n != 1 {
		t.Errorf("%d accounts, want 1", n)
	}
}

// A function that commits by itself must not run again.
func TestCommitOfTheFunction(t *testing.T) {
	t.Parallel()
	h := newAccounts(t)
	runs := 0
	err := h.db.Transactor().Do(t.Context(), func(ctx context.Context, tx pgx.Tx) error {
		runs++
		if _, err := tx.Exec(ctx, h.in("INSERT INTO @.accounts VALUES (1, 7)")); err != nil {
			return err
		}
		return tx.Commit(ctx)
	})
	if !errors.Is(err, pgx.ErrTxClosed) || runs != 1 {
		t.Errorf("got %v after %d runs", err, runs)
	}
}

// Transactions work for a producer, although it may only add messages.
func TestTransactorOfAProducer(t *testing.T) {
	t.Parallel()
	h := newAccounts(t)
	role := h.cfg.Schema + "_poor"
	h.exec("CREATE ROLE " + role + "; GRANT USAGE ON SCHEMA " + h.cfg.Schema + " TO " + role + "; GRANT INSERT ON @.accounts TO " + role)
	pgtest.DropRoles(t, h.pool, h.cfg.Schema)
	poor := h.pool.Config()
	poor.ConnConfig.RuntimeParams["role"] = role
	pool := must(pgxpool.NewWithConfig(t.Context(), poor))(t)
	defer pool.Close()
	tr := must(postgres.Open(pool, h.cfg))(t).Transactor()
	if err := tr.Do(t.Context(), func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, h.in("INSERT INTO @.accounts VALUES (1, 7)"))
		return err
	}); err != nil {
		t.Error(err)
	}
	if n := h.number("SELECT count(*) FROM @.accounts"); n != 1 {
		t.Errorf("%d accounts, want 1", n)
	}
}

// TestConfig verifies that all errors are reported at once.
func TestConfig(t *testing.T) {
	t.Parallel()
	pool := must(pgxpool.New(t.Context(), "postgres://nobody@127.0.0.1:1/nothing"))(t)
	defer pool.Close()
	if _, err := postgres.Open(nil, postgres.Config{}); err == nil {
		t.Error("no pool, and no error")
	}
	if _, err := postgres.OpenSQL(nil, postgres.Config{}); err == nil {
		t.Error("no database, and no error")
	}
	wrong := postgres.Config{
		Schema: "No!", Home: strings.Repeat("x", 101), MaxLogSize: -1,
		Transactor: transactor.Config{
			Isolation: sql.LevelLinearizable, ResolveTimeout: -time.Second,
			Retry: retry.Policy{Attempts: -2, First: time.Second, Most: time.Millisecond},
		},
	}
	mistakes := []string{"No!", "Home has 101 bytes", "MaxLogSize is -1", "Linearizable", "Attempts is -2", "First (1s) is longer than Most (1ms)", "ResolveTimeout is -1s"}
	_, noPool := postgres.Open(nil, wrong)
	_, noDB := postgres.OpenSQL(nil, wrong)
	_, withPool := postgres.Open(pool, wrong)
	for _, c := range []struct {
		err  error
		want []string
	}{{noPool, append(mistakes, "pool is nil")}, {noDB, append(mistakes, "db is nil")}, {withPool, mistakes}} {
		for _, want := range c.want {
			if !strings.Contains(fmt.Sprint(c.err), want) {
				t.Errorf("%q is missing in: %v", want, c.err)
			}
		}
	}
	for _, c := range []transactor.Config{{}, {Retry: retry.Policy{First: time.Minute}}, {Retry: retry.Policy{Most: time.Millisecond}}} {
		if _, err := postgres.Open(pool, postgres.Config{Transactor: c}); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
