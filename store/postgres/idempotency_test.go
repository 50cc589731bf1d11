package postgres_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/postrider/postrider/idempotency"
	"github.com/postrider/postrider/idempotency/idempotencytest"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

func TestIdempotency(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, runIdempotencySuite)
}

func TestIdempotencyThroughPooler(t *testing.T) {
	t.Parallel()
	pgtest.EachPooled(t, runSQLIdempotencySuite)
}

func runIdempotencySuite(t *testing.T, dsn string) {
	pool := pgtest.Pool(t, dsn)
	cfg := pgtest.Schema(t, pool, postgres.Layout{})
	db := must(postgres.Open(pool, cfg))(t)
	idempotencytest.Run(t, func(t *testing.T) idempotencytest.Harness[pgx.Tx] {
		forgetKeys(t, pool, cfg)
		return idempotencytest.Harness[pgx.Tx]{
			Store: db.IdempotencyKeys(),
			Begin: func(t *testing.T) (pgx.Tx, func() error, func() error) {
				tx, err := pool.Begin(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return tx, func() error { return tx.Commit(t.Context()) }, func() error { return tx.Rollback(t.Context()) }
			},
		}
	})
}

func runSQLIdempotencySuite(t *testing.T, dsn string) {
	pool := pgtest.Pool(t, dsn)
	cfg := pgtest.Schema(t, pool, postgres.Layout{})
	sqlDB := stdlib.OpenDBFromPool(pool)
	t.Cleanup(func() { sqlDB.Close() })
	db := must(postgres.OpenSQL(sqlDB, cfg))(t)
	idempotencytest.Run(t, func(t *testing.T) idempotencytest.Harness[*sql.Tx] {
		forgetKeys(t, pool, cfg)
		return idempotencytest.Harness[*sql.Tx]{
			Store: db.IdempotencyKeys(),
			Begin: func(t *testing.T) (*sql.Tx, func() error, func() error) {
				tx, err := sqlDB.BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				return tx, tx.Commit, tx.Rollback
			},
		}
	})
}

func forgetKeys(t *testing.T, pool *pgxpool.Pool, cfg postgres.Config) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), fmt.Sprintf("TRUNCATE %q.idempotency_keys", cfg.Schema)); err != nil {
		t.Fatal(err)
	}
}

// TestIdempotencySnapshot verifies that a claim which a transaction's old snapshot hides fails with
// an error that allows a retry.
func TestIdempotencySnapshot(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		pool := pgtest.Pool(t, dsn)
		cfg := pgtest.Schema(t, pool, postgres.Layout{})
		store := must(postgres.Open(pool, cfg))(t).IdempotencyKeys()
		for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
			c := idempotency.Claim{ID: idempotency.ID{Principal: "ann", Route: "r", Key: string(level)}, Token: "1", Retention: 1e12}
			answer := idempotency.Answer{Status: 200}
			late, err := pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: level})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := late.Exec(t.Context(), "SELECT 1"); err != nil { // the snapshot
				t.Fatal(err)
			}
			err = pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
				if _, err := store.ClaimIn(t.Context(), tx, c); err != nil {
					return err
				}
				return store.Complete(t.Context(), tx, c, answer)
			})
			if err != nil {
				t.Fatal(err)
			}
			c.Token = "2"
			outcome, err := store.ClaimIn(t.Context(), late, c)
			if err == nil && outcome.State == idempotency.Claimed {
				err = store.Complete(t.Context(), late, c, answer)
			}
			if sqlState(err) != "40001" { // serialization_failure
				t.Errorf("%s: %v, %v", level, outcome.State, err)
			}
			_ = late.Rollback(t.Context())
		}
	})
}

// TestIdempotencyRoles verifies that consumers can use keys, that no role can list answers, and
// that no other role can read them at all.
func TestIdempotencyRoles(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, postgres.Layout{})
		migrator, err := h.db.Migrator(postgres.Layout{})
		if err != nil {
			t.Fatal(err)
		}
		if err := migrator.Roles(t.Context()); err != nil {
			t.Fatal(err)
		}
		pgtest.DropRoles(t, h.pool, h.cfg.Schema)
		for _, use := range []struct {
			sql       string
			consumers bool
		}{
			{"SELECT * FROM @.idempotency_keys", false},
			{"SELECT key FROM @.idempotency_keys", false},
			{"DELETE FROM @.idempotency_keys", false},
			{"UPDATE @.idempotency_keys SET principal = 'eve'", false},
			{"TRUNCATE @.idempotency_keys", false},
			{"SELECT @.idempotency_claim('', '', '', '', '', '', 1, 1)", true},
			{"SELECT @.idempotency_complete('', '', '', '', '', '', 1, 1, '')", true},
			{"SELECT @.idempotency_release('', '', '', '', '')", true},
			{"SELECT @.idempotency_purge(now(), 1)", true},
		} {
			for _, role := range []string{"producer", "relay", "operator", "consumer"} {
				err := h.write(t.Context(), func(ctx context.Context, h *house, tx pgx.Tx) error {
					if _, err := tx.Exec(ctx, "SET LOCAL ROLE "+h.cfg.Schema+"_"+role); err != nil {
						return err
					}
					return statement(use.sql)(ctx, h, tx)
				})
				allowed := use.consumers && role == "consumer"
				if allowed && err != nil || !allowed && sqlState(err) != "42501" { // insufficient_privilege
					t.Errorf("%s: %s: %v", role, use.sql, err)
				}
			}
		}
	})
}
