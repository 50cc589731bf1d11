package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// A run is one execution of this program.
type run struct {
	ctx   context.Context // ends when the user interrupts
	dir   string          // the repository
	out   io.Writer
	env   []string
	begin time.Time

	mu      sync.Mutex
	steps   []string // in the order in which they began
	seconds map[string]float64
	failed  []string
}

func newRun(ctx context.Context, dir string, out io.Writer) *run {
	return &run{ctx: ctx, dir: dir, out: out, env: os.Environ(), begin: time.Now(), seconds: make(map[string]float64)}
}

func (r *run) say(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.out, "%6.0f s  %s\n", time.Since(r.begin).Seconds(), fmt.Sprintf(format, args...))
}

// step runs one part of the check and records how long it took. A failed step does not stop later
// ones: a complete report is worth the minutes.
func (r *run) step(name string, do func() error) bool {
	r.mu.Lock()
	r.steps = append(r.steps, name)
	r.mu.Unlock()
	r.say("== %s", name)
	begin := time.Now()
	err := r.ctx.Err()
	if err == nil {
		err = do()
	}
	r.mu.Lock()
	r.seconds[name] = time.Since(begin).Seconds()
	if err != nil {
		r.failed = append(r.failed, name)
	}
	r.mu.Unlock()
	if err != nil {
		r.say("FAILED: %s\n%s", name, indent(err.Error()))
	}
	return err == nil
}

// beside runs a step in parallel with others. The returned function waits for its end.
func (r *run) beside(name string, do func() error) (wait func() bool) {
	done := make(chan bool, 1)
	go func() { done <- r.step(name, do) }()
	return sync.OnceValue(func() bool { return <-done })
}

// prepare returns a command that is interrupted, and so can clean up, when this program is.
func (r *run) prepare(name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(r.ctx, name, args...)
	cmd.Dir, cmd.Env = r.dir, r.env
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	return cmd
}

// command runs a program in a folder of the repository. Its output is part of the error and is
// shown only then.
func (r *run) command(folder, name string, args ...string) error {
	cmd := r.prepare(name, args...)
	cmd.Dir = filepath.Join(r.dir, folder)
	text, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, text)
	}
	return nil
}

// urgent raises the scheduling priority of this program and its children. Linux divides processor
// time among sessions: each connection of PostgreSQL is a session, but all tests together are only
// one. Without permission to do so, tests are slower.
func urgent() { _ = os.WriteFile("/proc/self/autogroup", []byte("-10"), 0) }
