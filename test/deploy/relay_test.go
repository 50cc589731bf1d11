package deploy_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider/store/postgres/pgtest"
	"github.com/postrider/postrider/test/said"
)

// log is a message log with its own schema.
type log struct {
	dsn, schema string
	pool        *pgxpool.Pool
}

func newLog(t *testing.T) log {
	t.Helper()
	dsn := pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18")
	l := log{dsn: dsn, schema: fmt.Sprintf("deploy%d_%d", os.Getpid(), time.Now().UnixNano()), pool: pgtest.Pool(t, dsn)}
	t.Cleanup(func() { pgtest.Drop(t, l.pool, l.schema) })
	run(t, program(t), "migrate", "up", "--dsn", dsn, "--schema", l.schema)
	return l
}

// config returns a configuration that delivers everything to standard output.
func (l log) config(health string) string {
	return fmt.Sprintf(`databases: {app: {url: %q, schema: %s}}
destinations: {out: {url: "stdout:"}}
feeds: {default: {}}
health: {listen: %q, token: t0ken}
`, l.dsn, l.schema, health)
}

func (l log) enqueue(t *testing.T) {
	t.Helper()
	if _, err := l.pool.Exec(t.Context(), "SELECT "+l.schema+".enqueue('order.placed', 'order', '42', '{}')"); err != nil {
		t.Fatal(err)
	}
}

// relay is a running process of the program.
type relay struct {
	t    *testing.T
	cmd  *exec.Cmd
	ends chan error
	said said.Buffer
}

func start(t *testing.T, env []string, name string, args ...string) *relay {
	t.Helper()
	r := &relay{t: t, ends: make(chan error, 1)}
	r.cmd = exec.CommandContext(context.WithoutCancel(t.Context()), name, args...)
	r.cmd.Env, r.cmd.Stdout, r.cmd.Stderr = env, &r.said, &r.said
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { r.ends <- r.cmd.Wait() }()
	t.Cleanup(func() { _ = r.cmd.Process.Kill() })
	return r
}

// stop stops it as service managers do.
func (r *relay) stop() {
	r.t.Helper()
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		r.t.Fatalf("%v\n%s", err, r.said.String())
	}
	select {
	case err := <-r.ends:
		if err != nil {
			r.t.Errorf("%v\n%s", err, r.said.String())
		}
	case <-time.After(30 * time.Second):
		r.t.Fatalf("it does not stop\n%s", r.said.String())
	}
}

func (r *relay) until(what string, ok func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatalf("%s: never\n%s", what, r.said.String())
		}
	}
}
