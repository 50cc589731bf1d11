package saga

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
)

// asWorker makes the test program a process of its own, to be killed.
const asWorker = "POSTRIDER_TEST_SAGA_WORKER"

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(asWorker) {
	case "":
		os.Exit(m.Run())
	case "five":
		err = workerOfOne(context.Background())
	case "fleet":
		err = workerOfMany(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// worker is the test program as a process, with some variables.
func (w *world) worker(t *testing.T, kind string, env ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), asWorker+"="+kind, "WORLD_DSN="+w.dsn, "WORLD_SCHEMA="+w.schema), env...)
	cmd.Stderr = os.Stderr
	return cmd
}

// workerOfOne starts a saga and runs it, and kills its own process at a statement.
func workerOfOne(ctx context.Context) error {
	at, err := strconv.Atoi(os.Getenv("KILL_AT"))
	if err != nil {
		return err
	}
	k := &knife{at: int64(at), how: func(*blade) {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // until it arrives
	}}
	others, err := openWorld(ctx, os.Getenv("WORLD_DSN"), os.Getenv("WORLD_SCHEMA"), nil)
	if err != nil {
		return err
	}
	w, err := openWorld(ctx, others.dsn, others.schema, k)
	if err != nil {
		return err
	}
	id := os.Getenv("SAGA_ID")
	if err := w.start(ctx, id, trip{Fails: os.Getenv("FAILS")}); err != nil {
		return err
	}
	return w.runUntilFinished(ctx, others, id)
}
