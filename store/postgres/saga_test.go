package postgres_test

import (
	"database/sql"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/postrider/postrider/saga"
	"github.com/postrider/postrider/saga/sagatest"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

func TestSagas(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, runSagaSuite)
}

func TestSagasThroughPooler(t *testing.T) {
	t.Parallel()
	pgtest.EachPooled(t, runSagaSuite)
}

func runSagaSuite(t *testing.T, dsn string) {
	pool := pgtest.Pool(t, dsn)
	db := must(postgres.Open(pool, pgtest.Schema(t, pool, postgres.Layout{Shards: 1})))(t)
	sagatest.Run(t, func(*testing.T) sagatest.Harness[pgx.Tx] {
		return sagatest.Harness[pgx.Tx]{Store: db.Sagas(), Admin: db.SagaAdmin(), Records: db.Admin()}
	})
}

func TestSQLSagas(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"))
	cfg := pgtest.Schema(t, pool, postgres.Layout{Shards: 1})
	records := must(postgres.Open(pool, cfg))(t).Admin()
	db := stdlib.OpenDBFromPool(pool)
	t.Cleanup(func() { db.Close() })
	sagas := must(postgres.OpenSQL(db, cfg))(t).Sagas()
	sagatest.Run(t, func(*testing.T) sagatest.Harness[*sql.Tx] {
		return sagatest.Harness[*sql.Tx]{Store: sagas, Admin: sagas.(saga.Admin), Records: records}
	})
}
