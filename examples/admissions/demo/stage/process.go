package stage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/postrider/postrider/examples/admissions/demo/patience"
)

// Process is a program in the background. Its time of birth tells it from whoever has the same number later.
type Process struct {
	PID  int
	Born string
}

// launch runs a program until somebody ends it, also after the end of this one.
func launch(program string, args, env []string, log string) (*Process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd := exec.Command(program, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C ends whoever watches, not the service
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &Process{PID: cmd.Process.Pid, Born: born(cmd.Process.Pid)}
	go func() { _ = cmd.Wait() }() // so that it does not stay as a zombie
	return p, nil
}

// Alive reports whether the process runs.
func (p *Process) Alive() bool { return p != nil && p.Born != "" && born(p.PID) == p.Born }

// end sends a signal and returns when the process is gone.
func (p *Process) end(ctx context.Context, signal syscall.Signal) error {
	if !p.Alive() {
		return nil
	}
	if err := syscall.Kill(p.PID, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return Until(ctx, func() error {
		if p.Alive() {
			return fmt.Errorf("process %d still runs after %s", p.PID, signal)
		}
		return nil
	})
}

// born is when a process was started, in ticks of the machine, or nothing if there is none. A zombie is none.
func born(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	// The second field is the name, which may have spaces and parentheses.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return ""
	}
	return fields[19] // field 22 of the file
}

// errGone is a process that has ended by itself: waiting does not help.
var errGone = errors.New("is not running")

// Until asks until there is no error.
func Until(ctx context.Context, ok func() error) error {
	return patience.Until(ctx, 20*time.Millisecond, errGone, ok)
}
