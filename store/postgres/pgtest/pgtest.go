// Package pgtest finds the PostgreSQL servers that tests run against and lends each test a schema.
//
// Servers are named by environment variables, which "dev/services env" prints. A test whose server
// is missing is skipped on a developer's machine and fails when CI=true.
package pgtest

import (
	"cmp"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/postrider/postrider/internal/need"
)

// versions lists the server versions that tests may find, as in the names of the variables.
var versions = []string{"14", "15", "16", "17", "18"}

// required lists the versions without which a check must fail: 15 and 18, or those in
// POSTRIDER_POSTGRES.
func required() []string { return strings.Fields(cmp.Or(os.Getenv("POSTRIDER_POSTGRES"), "15 18")) }

// Each runs f once for every PostgreSQL server, with its address. Use it for tests that depend on
// the server's version. The test of a missing required version fails or is skipped, and the others
// still run. They run in parallel, after the function that calls Each returns.
func Each(t *testing.T, f func(t *testing.T, dsn string)) {
	t.Helper()
	each(t, "POSTRIDER_TEST_POSTGRES", beside(f))
}

// Newest is Each in long test runs, and runs f with the newest server only in short ones. Use it
// for tests that do not depend on the server's version.
func Newest(t *testing.T, f func(t *testing.T, dsn string)) {
	t.Helper()
	short(t, "POSTRIDER_TEST_POSTGRES", versions[len(versions)-1], f)
}

func short(t *testing.T, prefix, version string, f func(t *testing.T, dsn string)) {
	t.Helper()
	if need.IsLong() {
		each(t, prefix, beside(f))
		return
	}
	t.Run("pg"+version, func(t *testing.T) { beside(f)(t, Env(t, prefix+version)) })
}

// InTurn is Each for tests that change the environment: it runs them one after another.
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

// EachPooled runs f once for every PgBouncer database, with its address. Short test runs use the
// one in front of the oldest required server, which Newest leaves out.
func EachPooled(t *testing.T, f func(t *testing.T, dsn string)) {
	t.Helper()
	short(t, "POSTRIDER_TEST_PGBOUNCER", required()[0], f)
}

func each(t *testing.T, prefix string, f func(t *testing.T, dsn string)) {
	t.Helper()
	for _, v := range versions {
		if os.Getenv(prefix+v) != "" || slices.Contains(required(), v) {
			t.Run("pg"+v, func(t *testing.T) { f(t, Env(t, prefix+v)) })
		}
	}
}

// Env returns a variable that "dev/services env" prints. Without it, it skips or fails the test.
func Env(t testing.TB, name string) string {
	t.Helper()
	return need.Env(t, name, "postgres15 postgres18 pgbouncer")
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
