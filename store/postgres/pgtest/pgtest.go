// Package pgtest finds the PostgreSQL servers that tests run against and gives each test a schema of its own.
//
// Servers are named by environment variables, which "dev/services env" prints. A test whose server is missing is
// skipped on a developer's machine and fails when CI=true.
package pgtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/store/postgres"
)

// versions are all the server versions that tests may find, as in the names of the variables.
var versions = []string{"14", "15", "16", "17", "18"}

// required lists the versions without which a check must not pass: 15 and 18, or those that POSTRIDER_POSTGRES names.
func required() []string { return strings.Fields(cmp.Or(os.Getenv("POSTRIDER_POSTGRES"), "15 18")) }

// Each runs f once for every PostgreSQL server there is, with its address. At least the required versions must be there: the others
// run all the same when one of them is missing. They run beside each other, and after the function that calls Each.
func Each(t *testing.T, f func(t *testing.T, dsn string)) {
	t.Helper()
	each(t, "POSTRIDER_TEST_POSTGRES", beside(f))
}

// Newest is Each for scenarios, which take long and are about the product more than about the server: the short form takes the newest
// server only.
func Newest(t *testing.T, f func(t *testing.T, dsn string)) {
	t.Helper()
	newest(t, "POSTRIDER_TEST_POSTGRES", f)
}

func newest(t *testing.T, prefix string, f func(t *testing.T, dsn string)) {
	t.Helper()
	if need.IsLong() {
		each(t, prefix, beside(f))
		return
	}
	version := versions[len(versions)-1]
	t.Run("pg"+version, func(t *testing.T) { beside(f)(t, Env(t, prefix+version)) })
}

// InTurn is Each for tests that change the environment: one server after the other.
func InTurn(t *testing.T, f func(t *testing.T, dsn string)) {
	t.Helper()
	each(t, "POSTRIDER_TEST_POSTGRES", f)
}

func beside(f func(t *testing.T, dsn string)) func(t *testing.T, dsn string) {
	return func(t *testing.T, dsn string) {
		t.Parallel()
		f(t, dsn)
	}
}

// EachPooled runs f once for every PgBouncer database there is, with its address. The pooler is the same whatever stands behind it, so
// the short form takes the newest server only.
func EachPooled(t *testing.T, f func(t *testing.T, dsn string)) {
	t.Helper()
	newest(t, "POSTRIDER_TEST_PGBOUNCER", f)
}

func each(t *testing.T, prefix string, f func(t *testing.T, dsn string)) {
	t.Helper()
	for _, v := range versions {
		if os.Getenv(prefix+v) != "" || slices.Contains(required(), v) {
			t.Run("pg"+v, func(t *testing.T) { f(t, Env(t, prefix+v)) })
		}
	}
}

// Env returns a variable that "dev/services env" prints, or ends the test without it.
func Env(t testing.TB, name string) string {
	t.Helper()
	return need.Env(t, name, "postgres15 postgres18 pgbouncer")
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
