package cli

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/postrider/postrider/store/postgres/pgtest"
)

func TestDevWithADatabase(t *testing.T) {
	c := newCLI(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"))
	quiet(t)
	d := startDev(t, "--dsn", c.dsn, "--schema", c.schema)
	d.look()
	d.send(c.dsn, c.schema)
	if r := c.run("dev", "url"); r.code != exitFailure || !strings.Contains(r.err, "to start one") {
		t.Errorf("a server of its own: exit code %d\n%s%s", r.code, r.out, r.err)
	}
	d.interrupt()
	if r := c.run("dev", "--keep", t.TempDir()); r.code != exitUsage || !strings.Contains(r.err, "--keep is for") {
		t.Errorf("exit code %d\n%s", r.code, r.err)
	}
}

// TestDevThrowaway also has the usual ports taken. Where the tests run as root, the server does not.
func TestDevThrowaway(t *testing.T) {
	quiet(t)
	for _, address := range []string{defaultConsole, fmt.Sprintf("127.0.0.1:%d", defaultDevPort)} {
		if l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address); err == nil { // or somebody else has it
			t.Cleanup(func() { _ = l.Close() })
		}
	}
	if r := offline(t, "dev", "--port", fmt.Sprint(defaultDevPort)); r.code != exitFailure || !strings.Contains(r.err, "port 8712 is taken") {
		t.Errorf("exit code %d\n%s", r.code, r.err)
	}
	if r := offline(t, "dev", "--console", defaultConsole); r.code != exitFailure || !strings.Contains(r.err, "address already in use") {
		t.Errorf("exit code %d\n%s", r.code, r.err)
	}
	d := startDev(t)
	d.look()
	r := offline(t, "dev", "url")
	address := strings.TrimSpace(r.out)
	if address != d.said(`export DATABASE_URL='(.*)'`) || strings.Contains(address, ":8712/") {
		t.Fatalf("%q, exit code %d\n%s", address, r.code, r.err)
	}
	d.send(address, "postrider")
	folder := d.said(`data in (\S+):`)
	if info, err := os.Stat(filepath.Join(folder, "url")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the password is not kept from others: %v", err)
	}
	wrong := regexp.MustCompile(`postgres:\w+@`).ReplaceAllString(address, "postgres:wrong@")
	if r := offline(t, "status", "--dsn", wrong); r.code != exitUnreachable || !strings.Contains(r.err, "28P01") {
		t.Errorf("without its password: exit code %d\n%s", r.code, r.err)
	}
	d.interrupt()
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", folder, err)
	}
	if r := offline(t, "dev", "url"); r.code != exitFailure {
		t.Errorf("exit code %d\n%s", r.code, r.out)
	}
}

// TestDevAfterKill holds that what was committed arrives, and that nothing of a killed process is in the way of the next.
func TestDevAfterKill(t *testing.T) {
	quiet(t)
	keep := filepath.Join(open(t), "kept")
	kill := func(d *developer) { signalTo(t, d.cmd, syscall.SIGKILL); <-d.ended }

	d := startDev(t)
	left := d.said(`data in (\S+):`)
	kill(d)
	d = startDev(t, "--keep", keep)
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", left, err)
	}
	signalTo(t, d.cmd, syscall.SIGSTOP)
	r := offline(t, "enqueue", "order.placed", "--dsn", d.said(`export DATABASE_URL='(.*)'`))
	if r.code != exitOK {
		t.Fatalf("exit code %d\n%s", r.code, r.err)
	}
	kill(d)
	if strings.Contains(d.out.String(), "order.placed") {
		t.Fatal("it was published before the kill: the test shows nothing")
	}
	d = startDev(t, "--keep", keep)
	d.until("the message from before", func() bool { return strings.Contains(d.out.String(), strings.TrimSpace(r.out)) })
	if r := offline(t, "dev", "--keep", keep); r.code != exitFailure || !strings.Contains(r.err, "is in use") {
		t.Errorf("a second one: exit code %d\n%s", r.code, r.err)
	}
	d.interrupt()
}

func TestDevEndsWithItsServer(t *testing.T) {
	quiet(t)
	d := startDev(t)
	pid, err := os.ReadFile(filepath.Join(d.said(`data in (\S+):`), "data", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	var server int
	if _, err := fmt.Sscan(string(pid), &server); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(server, syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	<-d.ended
	if code := d.cmd.ProcessState.ExitCode(); code != exitFailure || !strings.Contains(d.err.String(), "PostgreSQL has ended") {
		t.Errorf("exit code %d\n%s", code, d.err)
	}
}

func TestDevWithoutPostgreSQL(t *testing.T) {
	quiet(t)
	t.Setenv("PATH", t.TempDir())
	var messages bytes.Buffer
	_, a := newRoot(streams{err: &messages})
	_, err := a.startThrowaway(t.Context(), devOptions{places: []string{}, port: defaultDevPort}, false)
	var hinted hintedError
	if !errors.As(err, &hinted) {
		t.Fatal(err)
	}
	for _, want := range []string{"to install it: ", "docker run", "dev --dsn postgres://"} {
		if !strings.Contains(hinted.hint, want) {
			t.Errorf("no %q in\n%s", want, hinted.hint)
		}
	}
}

func TestDevMistakes(t *testing.T) {
	quiet(t)
	occupied := t.TempDir()
	if err := os.WriteFile(filepath.Join(occupied, "thesis.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"--dsn postgres://ann@db.example.com/shop": "on another machine, db.example.com",
		"--keep " + occupied:                       "holds other things",
		"--postgres " + occupied:                   "initdb",
		"url now":                                  "takes no arguments",
		"now":                                      "takes no arguments",
	} {
		r := offline(t, append([]string{"dev"}, strings.Fields(line)...)...)
		if r.code == exitOK || !strings.Contains(r.err, want) {
			t.Errorf("%s: exit code %d\n%s", line, r.code, r.err)
		}
	}
	t.Setenv("DATABASE_URL", "postgres://ann@127.0.0.1:1/shop")
	var messages bytes.Buffer
	code := execute(t.Context(), streams{in: strings.NewReader(""), out: &messages, err: &messages}, []string{"dev"})
	if code != exitUnreachable || !strings.Contains(messages.String(), "unset DATABASE_URL") {
		t.Errorf("exit code %d\n%s", code, messages.String())
	}
}
