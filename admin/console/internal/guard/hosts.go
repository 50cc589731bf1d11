package guard

import (
	"net"
	"net/netip"
	"strings"
)

// hosts are the host names of the console. Checking them prevents DNS rebinding: another site can
// resolve a name of its own to a loopback address, and could then read the console, but the browser
// still sends that name.
type hosts map[string]bool

func newHosts(names []string) hosts {
	h := make(hosts)
	for _, name := range names {
		h[hostOnly(name)] = true
	}
	return h
}

func (h hosts) has(host string) bool {
	name := hostOnly(host)
	return name != "" && (h[name] || Loopback(host))
}

// Loopback reports whether a host, with or without a port, always means this machine.
func Loopback(host string) bool {
	name := hostOnly(host)
	if name == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.Zone() == "" && ip.Unmap().IsLoopback()
}

// hostOnly returns a host in lower case, without port, brackets and trailing dot, or "" if it is
// invalid.
func hostOnly(host string) string {
	name := host
	if h, port, err := net.SplitHostPort(host); err == nil {
		if strings.Trim(port, "0123456789") != "" {
			return ""
		}
		name = h
	} else if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		name = host[1 : len(host)-1]
	}
	if strings.ContainsAny(name, "[]/\\@?# ,\t") {
		return ""
	}
	return strings.ToLower(strings.TrimSuffix(name, "."))
}
