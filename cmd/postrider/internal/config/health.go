package config

import (
	"fmt"
	"net"
	"strconv"
)

// Health configures the endpoints /livez, /readyz and /metrics of a process.
type Health struct {
	// Listen is a host and port, such as "127.0.0.1:8710". Defaults to none: there are no
	// endpoints.
	Listen string
	// Token is what callers must send as bearer token. It must never be logged. Required if other
	// machines can reach Listen.
	Token string
}

// Validate reports a Listen that is not a host and port, or that other machines can reach although
// there is no token.
func (h Health) Validate() error {
	if h.Listen == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(h.Listen)
	if _, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil {
		return fmt.Errorf("%q is not a host and port such as 127.0.0.1:8710", h.Listen)
	}
	if h.Token == "" && !isLoopback(host) {
		return fmt.Errorf("other machines can call %s, and health.token is missing: want a token, or 127.0.0.1", h.Listen)
	}
	return nil
}
