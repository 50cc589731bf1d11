package cli

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// developer is a "postrider dev" in a process of its own, with a cache of its own.
type developer struct {
	t        *testing.T
	cmd      *exec.Cmd
	out, err *watched
	ended    chan struct{}
}

// quiet takes away what a developer's shell may say, and what other tests leave in the cache.
func quiet(t *testing.T) {
	t.Helper()
	for _, name := range pgVariables {
		t.Setenv(name, "")
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
}

// open is a folder that everybody can enter, also the user who runs servers because root may not.
func open(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, path := range []string{filepath.Dir(folder), folder} {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func startDev(t *testing.T, args ...string) *developer {
	t.Helper()
	d := &developer{t: t, out: &watched{text: never}, err: &watched{text: never}, ended: make(chan struct{})}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute) // it has to end well
	d.cmd = exec.CommandContext(ctx, os.Args[0], append([]string{"dev"}, args...)...)
	d.cmd.Env = append(os.Environ(), runAsCommand+"=1")
	d.cmd.Stdout, d.cmd.Stderr = d.out, d.err
	d.cmd.Cancel = func() error { return d.cmd.Process.Signal(syscall.SIGTERM) }
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(d.ended)
		_ = d.cmd.Wait() // its state says it
	}()
	t.Cleanup(func() { cancel(); <-d.ended })
	d.until("it is ready", func() bool { return strings.Contains(d.err.String(), "In another terminal:") })
	return d
}

func (d *developer) until(what string, ok func() bool) {
	d.t.Helper()
	eventually(d.t, what, func() bool {
		select {
		case <-d.ended:
			if !ok() {
				d.t.Fatalf("%s: it has ended\n%s", what, d.err)
			}
		default:
		}
		return ok()
	}, d.err.String)
}

// said is what it says where a pattern has its brackets.
func (d *developer) said(pattern string) string {
	d.t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(d.err.String())
	if found == nil {
		d.t.Fatalf("nothing like %s in\n%s", pattern, d.err)
	}
	return found[1]
}

// send enqueues a message as a reader of the documentation does, and waits until it is printed.
func (d *developer) send(dsn, schema string) {
	d.t.Helper()
	payload := fmt.Sprintf(`{"at": %d}`, time.Now().UnixNano())
	var messages bytes.Buffer
	code := execute(d.t.Context(), streams{in: strings.NewReader(""), out: &messages, err: &messages},
		[]string{"enqueue", "order.placed", "--aggregate", "order/42", "--payload", payload, "--dsn", dsn, "--schema", schema})
	if code != exitOK {
		d.t.Fatalf("exit code %d\n%s", code, messages.String())
	}
	d.until("the message", func() bool { return strings.Contains(d.out.String(), `"payload":`+payload) })
}

// look opens the console.
func (d *developer) look() {
	d.t.Helper()
	address := d.said(`the console is at (\S+)`)
	d.until("the console", func() bool {
		answer, err := http.Get(address)
		return err == nil && answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
	})
}

// interrupt is Ctrl-C.
func (d *developer) interrupt() {
	d.t.Helper()
	signalTo(d.t, d.cmd, syscall.SIGINT)
	<-d.ended
	if code := d.cmd.ProcessState.ExitCode(); code != exitOK {
		d.t.Errorf("exit code %d\n%s", code, d.err)
	}
}
