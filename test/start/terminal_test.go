package start_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/postrider/postrider/test/said"
)

// terminal is a shell that runs one block after the other: folder and variables persist.
type terminal struct {
	t      *testing.T
	folder string
	state  string // file with the variables
	env    []string
	typed  []*typed
}

// typed is a block of commands that is running or has ended.
type typed struct {
	text  string
	cmd   *exec.Cmd
	out   said.Buffer
	err   said.Buffer
	ended chan struct{}
}

func newTerminal(t *testing.T, folder string, env []string) *terminal {
	t.Helper()
	return &terminal{t: t, folder: folder, state: filepath.Join(t.TempDir(), "state"), env: env}
}

// enter starts a block in its own process group, so that Ctrl-C reaches all of it.
func (s *terminal) enter(block string) *typed {
	s.t.Helper()
	const script = `if [ -e "$0" ]; then . "$0"; fi; trap '{ export -p; printf "cd %q\n" "$PWD"; } >"$0"' EXIT; eval "$1"`
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.t.Context()), 4*time.Minute) // it must end cleanly
	b := &typed{text: block, ended: make(chan struct{})}
	b.cmd = exec.CommandContext(ctx, "bash", "-e", "-c", script, s.state, block)
	b.cmd.Dir, b.cmd.Env, b.cmd.Stdout, b.cmd.Stderr = s.folder, s.env, &b.out, &b.err
	b.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	b.cmd.Cancel = func() error { return syscall.Kill(-b.cmd.Process.Pid, syscall.SIGTERM) }
	if err := b.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func() {
		defer close(b.ended)
		_ = b.cmd.Wait() // its state has the result
	}()
	s.t.Cleanup(func() { cancel(); <-b.ended })
	s.typed = append(s.typed, b)
	return b
}

// run waits for the end of a block, which must succeed.
func (s *terminal) run(block string) {
	s.t.Helper()
	b := s.enter(block)
	<-b.ended
	if code := b.cmd.ProcessState.ExitCode(); code != 0 {
		s.t.Fatalf("exit code %d of\n%s%s%s", code, b.text, b.out.String(), b.err.String())
	}
}

// folderNow returns the working directory after the blocks so far.
func (s *terminal) folderNow() string {
	s.t.Helper()
	entries, err := filepath.Glob(filepath.Join(s.folder, "*", "go.work"))
	if err != nil || len(entries) != 1 {
		s.t.Fatalf("the clone: %q, %v", entries, err)
	}
	return filepath.Dir(entries[0])
}

// shown returns everything that the blocks so far have printed.
func (s *terminal) shown() string {
	var all strings.Builder
	for _, b := range s.typed {
		all.WriteString(b.out.String())
	}
	return all.String()
}

func (b *typed) running() bool {
	select {
	case <-b.ended:
		return false
	default:
		return true
	}
}

// interrupt sends Ctrl-C, after which a program must end cleanly.
func (s *terminal) interrupt(b *typed) {
	s.t.Helper()
	if err := syscall.Kill(-b.cmd.Process.Pid, syscall.SIGINT); err != nil {
		s.t.Error(err)
	}
	<-b.ended
	if code := b.cmd.ProcessState.ExitCode(); code != 0 {
		s.t.Errorf("exit code %d after Ctrl-C in\n%s%s", code, b.text, b.err.String())
	}
}

// until polls for a condition that a running block causes.
func (s *terminal) until(what string, b *typed, ok func() bool) {
	s.t.Helper()
	deadline := time.After(4 * time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if !b.running() && !ok() {
			s.t.Fatalf("%s: never, and it has ended:\n%s%s%s", what, b.text, b.out.String(), b.err.String())
		}
		select {
		case <-tick.C:
		case <-deadline:
			s.t.Fatalf("%s: never\n%s%s", what, b.out.String(), b.err.String())
		}
	}
}

// without returns the environment without a developer's settings for databases and this program.
func without(names ...string) []string {
	var env []string
next:
	for _, variable := range os.Environ() {
		for _, name := range names {
			if strings.HasPrefix(variable, name) {
				continue next
			}
		}
		env = append(env, variable)
	}
	return env
}
