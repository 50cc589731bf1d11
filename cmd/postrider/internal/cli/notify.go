package cli

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// manager notifies the program that has started this process, such as systemd with Type=notify.
type manager struct {
	live    func() error  // returns nil if the relays make progress
	summary func() string // one line for people
	log     *slog.Logger
}

// tell notifies the service manager that the relays run, how they are and, once ctx ends, that they
// stop. Without a service manager it does nothing. The relays count as started immediately: a relay
// that waits for its broker must not be killed for a missed start timeout.
func (m manager) tell(ctx context.Context) {
	address := os.Getenv("NOTIFY_SOCKET")
	if address == "" {
		return
	}
	socket, err := new(net.Dialer).DialContext(ctx, "unixgram", address)
	if err != nil {
		m.log.Warn("relay: cannot notify the service manager", "err", err)
		return
	}
	defer socket.Close() //nolint:errcheck // nothing left to report
	every, watched := watchdog()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for first := true; ; first = false {
		var said []string
		if first {
			said = append(said, "READY=1")
		}
		if watched && m.live() == nil {
			said = append(said, "WATCHDOG=1")
		}
		// Ignore errors: a manager that gets no notification restarts the process.
		_, _ = fmt.Fprint(socket, strings.Join(append(said, "STATUS="+m.summary()), "\n"))
		select {
		case <-ticker.C:
		case <-ctx.Done():
			_, _ = fmt.Fprint(socket, "STOPPING=1\nSTATUS=finishing what is in flight")
			return
		}
	}
}

// watchdog returns the interval between two notifications, a third of what the service manager
// expects, and reports whether it expects any.
func watchdog() (every time.Duration, watched bool) {
	micros, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	if pid := os.Getenv("WATCHDOG_PID"); err != nil || micros <= 0 || pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return checkInterval, false
	}
	return min(time.Duration(micros)*time.Microsecond/3, checkInterval), true
}

// summary returns the status line for "systemctl status", without secrets.
func (h *health) summary() string {
	feeds, ready := h.ready()
	if ready {
		return fmt.Sprintf("serving %s", count(len(feeds), "feed"))
	}
	for _, f := range feeds {
		if !f.Ready {
			return fmt.Sprintf("feed %s waits for %s", f.Feed, strings.Join(f.WaitsFor, ", "))
		}
	}
	return "stopping"
}
