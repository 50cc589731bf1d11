package cdc_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/store/postgres/pgtest"
)

// server is a separate instance: the others do not write what logical decoding needs, and changing
// that takes a restart.
const server = "postgres18@cdc"

// start returns the address of a server with wal_level = logical, which is stopped when the test
// ends.
func start(t *testing.T) string {
	t.Helper()
	services := pgtest.Env(t, "POSTRIDER_SERVICES")
	run(t, services, "up", server)
	t.Cleanup(func() { _ = exec.Command(services, "down", server).Run() })
	dsn := ""
	for line := range strings.Lines(run(t, services, "env")) {
		if value, ok := strings.CutPrefix(line, "export POSTRIDER_TEST_POSTGRES18_CDC="); ok {
			dsn = strings.Trim(strings.TrimSpace(value), `'"`)
		}
	}
	if level := setLevel(t, dsn); level != "logical" {
		run(t, services, "restart", server)
		if level = setLevel(t, dsn); level != "logical" {
			t.Fatalf("wal_level is %s", level)
		}
	}
	return dsn
}

// setLevel sets wal_level for the next start, and returns the current value.
func setLevel(t *testing.T, dsn string) (level string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), "ALTER SYSTEM SET wal_level = logical"); err != nil {
		t.Fatal(err)
	}
	if err := conn.QueryRow(t.Context(), "SHOW wal_level").Scan(&level); err != nil {
		t.Fatal(err)
	}
	return level
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}
