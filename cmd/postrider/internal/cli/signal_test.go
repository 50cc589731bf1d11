package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/postrider/postrider/store/postgres/pgtest"
)

// startCommand starts the command as a process of its own, with a pipe from its stdout.
func startCommand(t *testing.T, stderr io.Writer, args ...string) (*exec.Cmd, io.Reader) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), runAsCommand+"=1")
	cmd.Stderr = stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, out
}

func waitForCode(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode()
}

func signalTo(t *testing.T, cmd *exec.Cmd, s os.Signal) {
	t.Helper()
	if err := cmd.Process.Signal(s); err != nil {
		t.Error(err)
	}
}

func TestFirstSignalStopsCleanly(t *testing.T) {
	t.Parallel()
	c := newCLI(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES15"))
	c.must("migrate", "up")
	messages := &watched{text: "changed hands"}
	working := make(chan struct{})
	messages.seen = func() { close(working) }
	cmd, _ := startCommand(t, messages, "relay", "--to", "discard:", "--dsn", c.dsn, "--schema", c.schema)
	<-working
	signalTo(t, cmd, syscall.SIGTERM)
	if code := waitForCode(t, cmd); code != exitOK || !strings.Contains(messages.String(), "relay: stopped") {
		t.Errorf("exit code %d\n%s", code, messages)
	}
	var held int
	err := c.pool.QueryRow(t.Context(), "SELECT count(*) FROM "+c.schema+".cursors WHERE NOT released").Scan(&held)
	if err != nil || held != 0 {
		t.Errorf("%d shards are still held, %v", held, err)
	}
}

// TestSecondSignalStopsAtOnce blocks a relay in its destination, by reading none but the first bytes of what it prints.
func TestSecondSignalStopsAtOnce(t *testing.T) {
	t.Parallel()
	c := newCLI(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES15"))
	c.must("migrate", "up")
	c.exec("SELECT @schema@.enqueue('test.large', 'test', '1', to_json(repeat('x', 4000000)))")
	messages := &watched{text: never}
	cmd, out := startCommand(t, messages, "relay", "--to", "stdout:", "--dsn", c.dsn, "--schema", c.schema,
		"--drain-timeout", "1m", "--lease", "5m")
	if _, err := io.ReadFull(out, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	signalTo(t, cmd, syscall.SIGINT)
	signalTo(t, cmd, syscall.SIGTERM)
	if code := waitForCode(t, cmd); code != exitInterrupted {
		t.Errorf("exit code %d, want %d\n%s", code, exitInterrupted, messages)
	}
}
