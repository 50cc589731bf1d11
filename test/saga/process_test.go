package saga

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/postrider/postrider/saga"
)

// TestKilledAtStatement kills the process (SIGKILL) before a statement of a saga of five steps is sent, for every one of them, and
// lets another finish it.
func TestKilledAtStatement(t *testing.T) {
	w := newWorld(t)
	for _, fails := range []string{"", "insurance"} {
		points := enumerate(func(at int) bool { return w.runKilled(t, fmt.Sprintf("p%s%d", fails, at), fails, at) })
		t.Logf("failing step %q: killed at %d points", fails, points)
		if points < 40 {
			t.Errorf("only %d points: are the statements seen?", points)
		}
	}
}

// runKilled runs one saga in a process that is killed, and then to its end.
func (w *world) runKilled(t *testing.T, id, fails string, at int) bool {
	err := w.worker(t, "five", "SAGA_ID="+id, "FAILS="+fails, fmt.Sprint("KILL_AT=", at)).Run()
	var exit *exec.ExitError
	killed := errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
	if err != nil && !killed {
		t.Errorf("%s: %v", id, err)
		return false
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := w.start(ctx, id, trip{Fails: fails}); err != nil && !errors.Is(err, saga.ErrExists) {
		t.Errorf("%s: %v", id, err)
		return false
	}
	if err := w.runUntilFinished(ctx, w, id); err != nil {
		t.Errorf("%s: %v", id, err)
		return false
	}
	w.mustBeWhole(t, id, fmt.Sprintf("killed at %d", at), fails)
	return killed
}
