// Package scratch creates databases like a reader's: the tables are in schema postrider, as in the
// documentation.
package scratch

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// Empty creates an empty database on PostgreSQL 15 that is removed with the test, and returns its
// address.
func Empty(t testing.TB) string {
	t.Helper()
	return pgtest.Database(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES15"))
}

// Pool creates a database with Postrider's tables and those that the page assumes, and connects to
// it.
func Pool(t testing.TB, tables ...string) *pgxpool.Pool {
	t.Helper()
	pool, _ := Open(t, tables...)
	return pool
}

// Open is like [Pool], and also returns Postrider's part of the database.
func Open(t testing.TB, tables ...string) (*pgxpool.Pool, *postgres.DB) {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), Empty(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	db, err := postgres.Open(pool, postgres.Config{})
	if err != nil {
		t.Fatal(err)
	}
	migrator, err := db.Migrator(postgres.Layout{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := migrator.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), strings.Join(tables, ";\n"), pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	return pool, db
}

// Count returns the single number that a query returns.
func Count(t testing.TB, pool *pgxpool.Pool, query string) int {
	t.Helper()
	var n int
	if err := pool.QueryRow(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Await waits until a query returns a number.
func Await(t testing.TB, pool *pgxpool.Pool, query string, want int) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		n := Count(t, pool, query)
		if n == want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: %d, want %d", query, n, want)
		}
	}
}
