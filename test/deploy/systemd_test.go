package deploy_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	core "github.com/postrider/postrider/relay"
)

const unit = root + "/deploy/systemd/postrider.service"

// unitHere returns the unit with a program that exists on this machine.
func unitHere(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "postrider.service")
	text := strings.ReplaceAll(read(t, unit), "/usr/bin/postrider", program(t))
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestUnit(t *testing.T) {
	path := unitHere(t)
	if out, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--man=no", path).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	out := run(t, "systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=20", path)
	exposure := regexp.MustCompile(`exposure level.*: ([0-9.]+)`).FindStringSubmatch(out)
	if exposure == nil {
		t.Fatalf("no exposure level in\n%s", out)
	}
	t.Logf("exposure level %s of 10", exposure[1])
}

// TestUnitWaitsForTheDrain checks that systemd does not kill a relay that drains.
func TestUnitWaitsForTheDrain(t *testing.T) {
	found := regexp.MustCompile(`(?m)^TimeoutStopSec=(.*)$`).FindStringSubmatch(read(t, unit))
	if found == nil {
		t.Fatal("no TimeoutStopSec")
	}
	stop, err := time.ParseDuration(found[1])
	if drain := (core.Config{}).WithDefaults().DrainTimeout; err != nil || stop < drain+15*time.Second {
		t.Errorf("TimeoutStopSec is %v, the time to drain %v, %v", stop, drain, err)
	}
}

func TestSystemdHearsOfARelay(t *testing.T) {
	l := newLog(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "postrider.yaml")
	if err := os.WriteFile(file, []byte(l.config("127.0.0.1:0")), 0o600); err != nil {
		t.Fatal(err)
	}
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	r := start(t, append(os.Environ(), "NOTIFY_SOCKET="+socket.LocalAddr().String(), "WATCHDOG_USEC="+strconv.Itoa(300_000)),
		program(t), "relay", "--config", file)
	next := func() string {
		t.Helper()
		text := make([]byte, 4096)
		if err := socket.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		n, err := socket.Read(text)
		if err != nil {
			t.Fatalf("%v\n%s", err, r.said.String())
		}
		return string(text[:n])
	}
	if first := next(); !strings.HasPrefix(first, "READY=1\nWATCHDOG=1\nSTATUS=") {
		t.Errorf("first: %q", first)
	}
	deadline := time.Now().Add(30 * time.Second)
	for text := ""; text != "WATCHDOG=1\nSTATUS=serving 1 feed"; text = next() {
		if time.Now().After(deadline) {
			t.Fatalf("it does not serve: %q", text)
		}
		if text != "" && !strings.HasPrefix(text, "WATCHDOG=1\nSTATUS=feed default waits for ") {
			t.Errorf("on the way: %q", text)
		}
	}
	r.stop()
	last := next()
	for strings.HasPrefix(last, "WATCHDOG=1\n") { // sent earlier
		last = next()
	}
	if !strings.HasPrefix(last, "STOPPING=1\n") {
		t.Errorf("last: %q", last)
	}
}
