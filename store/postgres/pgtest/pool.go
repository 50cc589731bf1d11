package pgtest

import (
	"context"
	"os"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// shared opens the pools that the tests of this process share, by the address of their server. A
// server needs longer to load the functions into a new session than most tests run. Servers that
// tests kill have no shared pool.
var shared = func() map[string]func() (*pgxpool.Pool, error) {
	all := make(map[string]func() (*pgxpool.Pool, error))
	for _, v := range versions {
		for _, prefix := range []string{"POSTRIDER_TEST_POSTGRES", "POSTRIDER_TEST_PGBOUNCER"} {
			if dsn := os.Getenv(prefix + v); dsn != "" {
				all[dsn] = sync.OnceValues(func() (*pgxpool.Pool, error) { return connect(dsn) })
			}
		}
	}
	return all
}()

// Pool connects to a server. The pool is shared with other tests of the process. It drops sessions
// whose time zone or date format a test has changed. A test that changes any other session setting
// needs OwnPool.
func Pool(t testing.TB, dsn string) *pgxpool.Pool {
	t.Helper()
	open := shared[dsn]
	if open == nil {
		return OwnPool(t, dsn)
	}
	pool, err := open()
	if err != nil {
		t.Fatal(err)
	}
	return pool
}

// OwnPool returns a pool that is closed when the test ends.
func OwnPool(t testing.TB, dsn string) *pgxpool.Pool {
	t.Helper()
	pool, err := connect(dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func connect(dsn string) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = 80
	// Every user behind a pooler has to set this.
	cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	var begins sync.Map // the settings with which each session began
	cfg.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		begins.Store(conn, settingsOf(conn))
		return nil
	}
	cfg.AfterRelease = func(conn *pgx.Conn) bool {
		begin, _ := begins.Load(conn)
		return begin == settingsOf(conn)
	}
	cfg.BeforeClose = func(conn *pgx.Conn) { begins.Delete(conn) }
	return pgxpool.NewWithConfig(context.Background(), cfg)
}

// settingsOf returns the settings that the server reports whenever a session changes them.
func settingsOf(conn *pgx.Conn) [3]string {
	status := conn.PgConn().ParameterStatus
	return [3]string{status("TimeZone"), status("DateStyle"), status("IntervalStyle")}
}
