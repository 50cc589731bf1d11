// Package need declares what a test needs from its machine: a server, a program, time, or exclusive
// use.
//
// If a server or a program is missing, the test is skipped on a developer's machine and fails when
// CI=true: a run without its servers must not look like a success. dev/check recognises the other
// reasons to skip by the first word of the message.
package need

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Env returns a variable that "dev/services env" prints: the address of a server.
func Env(t testing.TB, variable, service string) string {
	t.Helper()
	value := os.Getenv(variable)
	if value == "" {
		missing(t, variable+` is not set; start the server: dev/services up `+service+` && eval "$(dev/services env)"`)
	}
	return value
}

// Program returns the path of a program that "dev/services install" installs.
func Program(t testing.TB, name, install string) string {
	t.Helper()
	if tools := os.Getenv("POSTRIDER_TOOLS"); tools != "" {
		if path, err := exec.LookPath(filepath.Join(tools, name)); err == nil {
			return path
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		missing(t, name+` is missing; install it: dev/services install `+install+` && eval "$(dev/services env)"`)
	}
	return path
}

func missing(t testing.TB, message string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(message)
	}
	t.Skip(message)
}

// Root skips a test that needs to run as root.
func Root(t testing.TB, why string) {
	t.Helper()
	if os.Getuid() != 0 {
		missing(t, "must run as root: "+why)
	}
}

// Long skips a test unless it runs as part of make check-long.
func Long(t testing.TB, why string) {
	t.Helper()
	if !IsLong() {
		t.Skip("long: " + why + "; set POSTRIDER_LONG=1")
	}
}

// IsLong reports whether tests run in their long form.
func IsLong() bool { return os.Getenv("POSTRIDER_LONG") != "" }

// Alone is for tests that measure time, or use so much of the machine that others would fail. make
// check runs them after the others, one at a time.
func Alone(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("POSTRIDER_ALONE") == "later" {
		t.Skip("alone: " + why)
	}
}

// Services runs the repository's dev/services, such as Services(t, "kill", "nats@crash").
func Services(t testing.TB, args ...string) {
	t.Helper()
	script := Env(t, "POSTRIDER_SERVICES", args[len(args)-1])
	if out, err := exec.Command(script, args...).CombinedOutput(); err != nil {
		t.Fatalf("dev/services %v: %v\n%s", args, err, out)
	}
}

// Own reserves a server that the test kills, such as "nats@crash", until the test ends. Until then
// the environment variables of nats point to it, so that the code under test needs no changes.
func Own(t *testing.T, service string) {
	t.Helper()
	const owned = "POSTRIDER_OWNED"
	if os.Getenv(owned) == service { // a child process of the owner
		return
	}
	f, err := os.OpenFile(filepath.Join(Env(t, "POSTRIDER_SERVICES_DIR", service), "lock", service+".owner"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() }) // releases the lock, as the end of the process does
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatalf("waiting for %s: %v", service, err)
	}
	Services(t, "up", service)
	t.Setenv(owned, service)
	kind, instance, ok := strings.Cut(strings.ToUpper(service), "@")
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		if usual, its := strings.CutSuffix(name, "_"+instance); ok && its && strings.HasPrefix(name, "POSTRIDER_TEST_"+kind) {
			t.Setenv(usual, value)
		}
	}
}

// Restart kills a server as a crash would, and starts it again.
func Restart(t testing.TB, service string) {
	t.Helper()
	Services(t, "kill", service)
	Services(t, "start", service)
}
