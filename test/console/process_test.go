package console

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/postrider/postrider/test/built"
	"github.com/postrider/postrider/test/said"
)

// process is a command that runs until it is stopped, and can be restarted with the same arguments.
type process struct {
	t    *testing.T
	path string
	args []string

	mu   sync.Mutex
	cmd  *exec.Cmd
	done chan struct{}
	said said.Buffer
}

// start runs the command until the test ends.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{t: t, path: built.Program(t, "cmd/postrider"), args: args}
	t.Cleanup(func() {
		p.kill(syscall.SIGKILL)
		if t.Failed() {
			t.Logf("postrider %s said:\n%s", strings.Join(args, " "), lastLines(p.said.String(), 30))
		}
	})
	if err := p.launch(); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *process) launch() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cmd, p.done = exec.Command(p.path, p.args...), make(chan struct{})
	p.cmd.Stdout, p.cmd.Stderr = &p.said, &p.said
	p.cmd.Env = environment()
	if err := p.cmd.Start(); err != nil {
		return err
	}
	go func(cmd *exec.Cmd, done chan struct{}) {
		_ = cmd.Wait()
		close(done)
	}(p.cmd, p.done)
	return nil
}

// kill signals the process and waits for its end.
func (p *process) kill(how syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil || p.cmd.Process == nil {
		return
	}
	_ = p.cmd.Process.Signal(how)
	<-p.done
}

// run runs the command to its end and returns its output.
func run(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(built.Program(t, "cmd/postrider"), args...)
	cmd.Env = environment()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("postrider %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// environment returns the test's environment without variables that would change the command's
// configuration.
func environment() []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "POSTRIDER_") && !strings.HasPrefix(v, "OUTBOX_") && !strings.HasPrefix(v, "INTEV_") && !strings.HasPrefix(v, "OTEL_") {
			env = append(env, v)
		}
	}
	return append(env, "TZ=UTC")
}

// eventually polls ok until it succeeds, and fails the test if that takes too long.
func eventually(t *testing.T, what string, ok func() error) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ok()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: still not after 30 s: %v", what, err)
		}
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
	}
}

// answers waits until an address responds with a status.
func answers(t *testing.T, url string, status int) {
	t.Helper()
	eventually(t, url, func() error {
		resp, err := http.Get(url)
		if err != nil {
			return errors.New("nobody answers")
		}
		resp.Body.Close()
		if resp.StatusCode != status {
			return fmt.Errorf("answers %s", resp.Status)
		}
		return nil
	})
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
