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

// Process is a program in the background. Its start time distinguishes it from a later process with
// the same PID.
type Process struct {
	PID  int
	Born string
}

// launch starts a program that keeps running after this one has ended.
func launch(program string, args, env []string, log string) (*Process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd := exec.Command(program, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C must not end the service
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &Process{PID: cmd.Process.Pid, Born: born(cmd.Process.Pid)}
	go func() { _ = cmd.Wait() }() // reap the process
	return p, nil
}

// Alive reports whether the process runs.
func (p *Process) Alive() bool { return p != nil && p.Born != "" && born(p.PID) == p.Born }

// end sends a signal and waits until the process is gone.
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

// born returns the start time of a process in clock ticks. It is empty if there is no such process
// or it is a zombie.
func born(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	// The second field is the name, which may contain spaces and parentheses.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return ""
	}
	return fields[19] // field 22 of the file
}

// errGone means that a process ended by itself, so that waiting is useless.
var errGone = errors.New("is not running")

// Until retries ok until it succeeds or returns errGone.
func Until(ctx context.Context, ok func() error) error {
	return patience.Until(ctx, 20*time.Millisecond, errGone, ok)
}
