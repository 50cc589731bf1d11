// Package ormtest provides databases for the examples, and checks their orders and messages.
package ormtest

import (
	"database/sql"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/examples/orm"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// The dialects, as named by ent.
const (
	Postgres = "postgres"
	MySQL    = "mysql"
)

// Database is a new database with an empty table of orders and an outbox.
type Database struct {
	DB      *sql.DB
	Outbox  postrider.Outbox[*sql.Tx]
	Dialect string
	Pool    *pgxpool.Pool // the same database with pgx; nil if it is not PostgreSQL
	Pgx     *postgres.DB  // Postrider's part of it; nil if Pool is

	store   feeds.Store
	feed    feeds.Feed
	demands []feeds.Demand
}

const orders = "CREATE TABLE orders (id varchar(36) PRIMARY KEY, item varchar(100) NOT NULL)"

// Each runs f once for every available database.
func Each(t *testing.T, f func(t *testing.T, db *Database)) {
	t.Helper()
	EachPostgres(t, f)
	MariaDB(t, nil, f)
}

// EachPostgres runs f once for every available version of PostgreSQL.
func EachPostgres(t *testing.T, f func(t *testing.T, db *Database)) {
	t.Helper()
	pgtest.Newest(t, func(t *testing.T, server string) { f(t, openPostgres(t, server)) })
}

func openPostgres(t *testing.T, server string) *Database {
	t.Helper()
	pool := must(pgxpool.New(t.Context(), pgtest.Database(t, server)))
	t.Cleanup(pool.Close)
	sqlDB := stdlib.OpenDBFromPool(pool)
	t.Cleanup(func() { _ = sqlDB.Close() })
	db := must(postgres.Open(pool, postgres.Config{}))
	must(must(db.Migrator(postgres.Layout{Shards: 4})).Up(t.Context()))
	must(sqlDB.ExecContext(t.Context(), orders))
	return &Database{
		DB:      sqlDB,
		Outbox:  must(orm.Outbox(Postgres, sqlDB)),
		Dialect: Postgres,
		Pool:    pool,
		Pgx:     db,
		store:   db.Feeds(),
	}
}

// must panics if there is an error that a test cannot handle.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
