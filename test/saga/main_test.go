package saga

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// asWorker makes the test program run as a worker process, to be killed.
const asWorker = "POSTRIDER_TEST_SAGA_WORKER"

func TestMain(m *testing.M) {
	if os.Getenv(asWorker) == "" {
		os.Exit(m.Run())
	}
	if err := work(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// worker starts the test program as a worker process.
func (w *world) worker(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asWorker+"=yes", "WORLD_DSN="+w.dsn, "WORLD_SCHEMA="+w.schema)
	cmd.Stderr = os.Stderr
	return cmd
}
