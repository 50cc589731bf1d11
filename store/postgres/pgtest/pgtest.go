// Package pgtest finds the PostgreSQL servers that tests run against and gives each test a schema of its own.
//
// Servers are named by environment variables, which "dev/services env" prints. A test whose server is missing is
// skipped on a developer's machine and fails when CI=true.
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider/store/postgres"
)

// versions are all the server versions that tests may find, as in the names of the variables.
var versions = []string{"14", "15", "16", "17", "18"}

// Each runs f once for every PostgreSQL server there is, with its address. At least versions 15 and 18 must be there.
func Each(t *testing.T, f func(t *testing.T, dsn string)) {
	t.Helper()
	each(t, "POSTRIDER_TEST_POSTGRES", f)
}

// EachPooled runs f once for every PgBouncer database there is, with its address.
func EachPooled(t *testing.T, f func(t *testing.T, dsn string)) {
	t.Helper()
	each(t, "POSTRIDER_TEST_PGBOUNCER", f)
}

func each(t *testing.T, prefix string, f func(t *testing.T, dsn string)) {
	t.Helper()
	for _, v := range versions {
		if dsn := os.Getenv(prefix + v); dsn != "" {
			t.Run("pg"+v, func(t *testing.T) { f(t, dsn) })
		} else if v == "15" || v == "18" {
			Env(t, prefix+v)
		}
	}
}

// Env returns a variable that "dev/services env" prints, or ends the test without it.
func Env(t testing.TB, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		message := name + ` is not set; start the servers: dev/services up postgres15 postgres18 pgbouncer && eval "$(dev/services env)"`
		if os.Getenv("CI") == "true" {
			t.Fatal(message)
		}
		t.Skip(message)
	}
	return value
}

// Pool connects to a server until the test ends.
func Pool(t testing.TB, dsn string) *pgxpool.Pool {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	cfg.MaxConns = 80
	// What every user behind a pooler has to set.
	cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	pool, err := pgxpool.NewWithConfig(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

var schemas atomic.Int64

// Schema lays out a fresh schema that is dropped when the test ends.
func Schema(t testing.TB, pool *pgxpool.Pool, layout postgres.Layout) postgres.Config {
	t.Helper()
	cfg := postgres.Config{Schema: fmt.Sprintf("t%d_%d_%s", os.Getpid(), schemas.Add(1), slug(t.Name()))}
	migrator, err := postgres.NewMigrator(pool, cfg, layout)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := migrator.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { Drop(t, pool, cfg.Schema) })
	return cfg
}

// Drop removes a schema, waiting for a server that is just coming back, and for sessions of processes that were killed and have
// not noticed: they may hold what it needs, in another order.
func Drop(t testing.TB, pool *pgxpool.Pool, schema string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for {
		_, err := pool.Exec(ctx, "DROP SCHEMA IF EXISTS "+pgx.Identifier{schema}.Sanitize()+" CASCADE")
		var refused *pgconn.PgError
		if errors.As(err, &refused) && refused.Code == "40P01" && ctx.Err() == nil {
			continue
		}
		if err != nil {
			t.Errorf("drop schema %s: %v", schema, err)
		}
		return
	}
}

func slug(name string) string {
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToLower(name))
	return name[max(0, len(name)-24):]
}
