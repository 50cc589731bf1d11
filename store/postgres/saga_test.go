package postgres_test

import (
	"database/sql"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/postrider/postrider/saga/sagatest"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

func TestSagas(t *testing.T) {
	t.Parallel()
	pgtest.Each(t, runSagaSuite)
}

func TestSagasThroughPooler(t *testing.T) {
	t.Parallel()
	runSagaSuite(t, pgtest.Env(t, "POSTRIDER_TEST_PGBOUNCER18"))
}

func runSagaSuite(t *testing.T, dsn string) {
	pool := pgtest.Pool(t, dsn)
	cfg := pgtest.Schema(t, pool, postgres.Layout{Shards: 1})
	records := must(postgres.NewDesk(pool, cfg))(t)
	sagas := must(postgres.NewSagas(pool, cfg))(t)
	sagatest.Run(t, func(*testing.T) sagatest.Harness[pgx.Tx] {
		return sagatest.Harness[pgx.Tx]{Store: sagas, Desk: sagas, Records: records}
	})
}

func TestSQLSagas(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"))
	cfg := pgtest.Schema(t, pool, postgres.Layout{Shards: 1})
	records := must(postgres.NewDesk(pool, cfg))(t)
	db := stdlib.OpenDBFromPool(pool)
	t.Cleanup(func() { db.Close() })
	sagas := must(postgres.NewSQLSagas(db, cfg))(t)
	sagatest.Run(t, func(*testing.T) sagatest.Harness[*sql.Tx] {
		return sagatest.Harness[*sql.Tx]{Store: sagas, Desk: sagas, Records: records}
	})
}
