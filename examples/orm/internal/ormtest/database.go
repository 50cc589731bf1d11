// Package ormtest gives the examples the databases to run on, and tells what has become of their orders and messages.
package ormtest

import (
	"database/sql"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/examples/orm"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// Dialects are named as ent does it.
const (
	Postgres = "postgres"
	MySQL    = "mysql"
)

// Database is a fresh database with an empty table of orders, and an outbox beside it.
type Database struct {
	DB      *sql.DB
	Outbox  postrider.Outbox[*sql.Tx]
	Dialect string
	Pool    *pgxpool.Pool // the same database with pgx; nil if it is not PostgreSQL

	store   postrider.Store
	feed    postrider.Feed
	demands []postrider.Demand
}

const orders = "CREATE TABLE orders (id varchar(36) PRIMARY KEY, item varchar(100) NOT NULL)"

// Each runs f once for every database there is.
func Each(t *testing.T, f func(t *testing.T, db *Database)) {
	t.Helper()
	EachPostgres(t, f)
	MariaDB(t, nil, f)
}

// EachPostgres runs f once for every version of PostgreSQL there is.
func EachPostgres(t *testing.T, f func(t *testing.T, db *Database)) {
	t.Helper()
	pgtest.Each(t, func(t *testing.T, server string) { f(t, openPostgres(t, server)) })
}

func openPostgres(t *testing.T, server string) *Database {
	t.Helper()
	pool := must(pgxpool.New(t.Context(), pgtest.Database(t, server)))
	t.Cleanup(pool.Close)
	db := stdlib.OpenDBFromPool(pool)
	t.Cleanup(func() { _ = db.Close() })
	must(must(postgres.NewMigrator(pool, postgres.Config{}, postgres.Layout{Shards: 4})).Up(t.Context()))
	must(db.ExecContext(t.Context(), orders))
	return &Database{
		DB:      db,
		Outbox:  must(orm.Outbox(Postgres)),
		Dialect: Postgres,
		Pool:    pool,
		store:   must(postgres.New(pool, postgres.Config{})),
	}
}

// must ends a test that cannot go on.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
