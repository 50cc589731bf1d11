// Package tabletest finds the database servers that tests of the classic engine run against, and gives each test a database of
// its own.
//
// Servers are named by environment variables, which "dev/services env" prints. A test whose server is missing is skipped on a
// developer's machine and fails when CI=true.
package tabletest

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/store/postgres/pgtest"
	"github.com/postrider/postrider/store/table"
)

// Server is a database server, and on it an empty place for one test.
type Server struct {
	Dialect table.Dialect
	// DB connects to the place: a database of MariaDB, a schema of PostgreSQL.
	DB *sql.DB
	// Address is what the driver of the dialect, "mysql" or "pgx", opens to get there.
	Address string
}

var places atomic.Int64

// Each runs f for MariaDB and PostgreSQL, beside each other; the long form for every PostgreSQL server there is.
func Each(t *testing.T, f func(t *testing.T, open func(testing.TB) Server)) {
	t.Helper()
	t.Run("mariadb", func(t *testing.T) {
		t.Parallel()
		f(t, MariaDB)
	})
	pgtest.Newest(t, onPostgres(f))
}

// InTurn is Each for tests that change the environment: one server after the other.
func InTurn(t *testing.T, f func(t *testing.T, open func(testing.TB) Server)) {
	t.Helper()
	t.Run("mariadb", func(t *testing.T) { f(t, MariaDB) })
	pgtest.InTurn(t, onPostgres(f))
}

func onPostgres(f func(t *testing.T, open func(testing.TB) Server)) func(t *testing.T, dsn string) {
	return func(t *testing.T, dsn string) { f(t, func(t testing.TB) Server { return Postgres(t, dsn) }) }
}

// MariaDB makes a database, and drops it when the test ends.
func MariaDB(t testing.TB) Server {
	t.Helper()
	cfg, err := mysql.ParseDSN(pgtest.Env(t, "POSTRIDER_TEST_MARIADB"))
	if err != nil {
		t.Fatal(err)
	}
	cfg.InterpolateParams = true
	name := fmt.Sprintf("t%d_%d", os.Getpid(), places.Add(1))
	administer(t, cfg, "CREATE DATABASE "+name+" CHARACTER SET utf8mb4")
	t.Cleanup(func() { administer(t, cfg, "DROP DATABASE "+name) })
	own := cfg.Clone()
	own.DBName = name
	return Server{table.MySQL, open(t, "mysql", own.FormatDSN()), own.FormatDSN()}
}

// Postgres makes a schema, which connections find first, and drops it when the test ends.
func Postgres(t testing.TB, dsn string) Server {
	t.Helper()
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	schema := fmt.Sprintf("t%d_%d", os.Getpid(), places.Add(1))
	db := stdlib.OpenDB(*cfg)
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.ExecContext(context.Background(), "CREATE SCHEMA "+schema); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := db.ExecContext(context.Background(), "DROP SCHEMA "+schema+" CASCADE"); err != nil {
			t.Error(err)
		}
	})
	address := dsn + "&search_path=" + schema
	return Server{table.PostgreSQL, open(t, "pgx", address), address}
}

func open(t testing.TB, driver, address string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, address)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(40)
	db.SetMaxIdleConns(40)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func administer(t testing.TB, cfg *mysql.Config, statement string) {
	t.Helper()
	db, err := sql.Open("mysql", cfg.FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(context.Background(), statement); err != nil {
		t.Fatal(err)
	}
}

// AgainOnMySQL runs all tests of the caller's package for MariaDB with MySQL, except for TestMySQL, which calls it: what both document is
// not always what both do. Skip may name more, as a part of a regular expression.
func AgainOnMySQL(t *testing.T, skip string) {
	t.Helper()
	need.Long(t, "all tests of MariaDB again")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^Test", "-test.skip", "^TestMySQL$|/pg1[0-9]$"+skip, "-test.timeout", "20m")
	cmd.Env = append(os.Environ(), "POSTRIDER_LONG=", "POSTRIDER_TEST_MARIADB="+need.Env(t, "POSTRIDER_TEST_MYSQL", "mysql"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// Migrate lays out Postrider's own tables.
func Migrate(t testing.TB, s Server, cfg table.Config) {
	t.Helper()
	cfg.Dialect = s.Dialect
	db, err := table.Open(s.DB, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Migrator().Up(context.Background()); err != nil {
		t.Fatal(err)
	}
}
