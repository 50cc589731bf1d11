package cli

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// listenAsManager is the socket of a service manager, and what the next message on it says.
func listenAsManager(t *testing.T) (next func() string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	return func() string {
		text := make([]byte, 4096)
		if err := socket.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		n, err := socket.Read(text)
		if err != nil {
			t.Fatal(err)
		}
		return string(text[:n])
	}
}

func TestTheServiceManagerHears(t *testing.T) {
	next := listenAsManager(t)
	t.Setenv("WATCHDOG_USEC", "30000")
	var hangs atomic.Bool
	m := manager{
		live: func() error {
			if hangs.Load() {
				return errors.New("hangs")
			}
			return nil
		},
		summary: func() string { return "well" },
		log:     slog.New(slog.DiscardHandler),
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { m.tell(ctx); close(ended) }()
	if got := next(); got != "READY=1\nWATCHDOG=1\nSTATUS=well" {
		t.Errorf("first: %q", got)
	}
	if got := next(); got != "WATCHDOG=1\nSTATUS=well" {
		t.Errorf("second: %q", got)
	}
	hangs.Store(true)
	_ = next() // may have been sent before
	if got := next(); got != "STATUS=well" {
		t.Errorf("of a relay that hangs: %q", got)
	}
	cancel()
	last := next()
	for ; strings.HasPrefix(last, "STATUS"); last = next() { // what was sent before
	}
	if !strings.HasPrefix(last, "STOPPING=1\n") {
		t.Errorf("last: %q", last)
	}
	<-ended
}

func TestTheWatchdogOfAnotherProcess(t *testing.T) {
	for _, c := range []struct{ micros, pid string }{{"", ""}, {"x", ""}, {"0", ""}, {"1000", "1"}} {
		t.Setenv("WATCHDOG_USEC", c.micros)
		t.Setenv("WATCHDOG_PID", c.pid)
		if every, watched := watchdog(); watched || every != checkInterval {
			t.Errorf("%v: every %v, %v", c, every, watched)
		}
	}
}
