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

// manager is the program that has started this one, such as systemd with Type=notify, and what it is told.
type manager struct {
	live    func() error  // nil: the relays do their work
	summary func() string // one line for people
	log     *slog.Logger
}

// tell says that the relays run, how they are and, once ctx ends, that they stop. Without a manager it does nothing. The
// relays count as started as soon as they try: one that waits for its broker is at work, and must not be killed for it.
func (m manager) tell(ctx context.Context) {
	address := os.Getenv("NOTIFY_SOCKET")
	if address == "" {
		return
	}
	socket, err := new(net.Dialer).DialContext(ctx, "unixgram", address)
	if err != nil {
		m.log.Warn("relay: the service manager cannot be told", "err", err)
		return
	}
	defer socket.Close() //nolint:errcheck // nothing is left to say
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
		// Errors are of no use here: a manager that does not listen starts the process again.
		_, _ = fmt.Fprint(socket, strings.Join(append(said, "STATUS="+m.summary()), "\n"))
		select {
		case <-ticker.C:
		case <-ctx.Done():
			_, _ = fmt.Fprint(socket, "STOPPING=1\nSTATUS=finishing what is in flight")
			return
		}
	}
}

// watchdog is how often the service manager wants to hear of this process, with time to spare, and whether it does.
func watchdog() (every time.Duration, watched bool) {
	micros, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	if pid := os.Getenv("WATCHDOG_PID"); err != nil || micros <= 0 || pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return pulseInterval, false
	}
	return min(time.Duration(micros)*time.Microsecond/3, pulseInterval), true
}

// summary is what "systemctl status" shows: one line, without secrets.
func (h *health) summary() string {
	feeds, ready := h.ready()
	if ready {
		return fmt.Sprintf("carrying %s", count(len(feeds), "feed"))
	}
	for _, f := range feeds {
		if !f.Ready {
			return fmt.Sprintf("feed %s waits for %s", f.Feed, strings.Join(f.WaitsFor, ", "))
		}
	}
	return "stopping"
}
