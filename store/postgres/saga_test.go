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
	pgtest.Each(t, runSagaSuite)
}

func TestSagasThroughPooler(t *testing.T) {
	runSagaSuite(t, pgtest.Env(t, "POSTRIDER_TEST_PGBOUNCER18"))
}

func runSagaSuite(t *testing.T, dsn string) {
	pool := pgtest.Pool(t, dsn)
	cfg := pgtest.Schema(t, pool, postgres.Layout{Shards: 1})
	records := need(postgres.NewDesk(pool, cfg))(t)
	sagas := need(postgres.NewSagas(pool, cfg))(t)
	sagatest.Run(t, func(*testing.T) sagatest.Harness[pgx.Tx] {
		return sagatest.Harness[pgx.Tx]{Store: sagas, Desk: sagas, Records: records}
	})
}

func TestSQLSagas(t *testing.T) {
	pool := pgtest.Pool(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"))
	cfg := pgtest.Schema(t, pool, postgres.Layout{Shards: 1})
	records := need(postgres.NewDesk(pool, cfg))(t)
	db := stdlib.OpenDBFromPool(pool)
	t.Cleanup(func() { db.Close() })
	sagas := need(postgres.NewSQLSagas(db, cfg))(t)
	sagatest.Run(t, func(*testing.T) sagatest.Harness[*sql.Tx] {
		return sagatest.Harness[*sql.Tx]{Store: sagas, Desk: sagas, Records: records}
	})
}
