package guard

import (
	"net"
	"net/netip"
	"strings"
)

// hosts are the names of the console. A page elsewhere can make a name of its own lead to a loopback address; the browser then
// takes the console for a part of that page, and shows it all. But it still sends that name.
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

// Loopback reports whether a host, with or without a port, is this machine under any circumstances.
func Loopback(host string) bool {
	name := hostOnly(host)
	if name == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.Zone() == "" && ip.Unmap().IsLoopback()
}

// hostOnly is a host without port, brackets and the dot of the root, in lower case; "" if it is none.
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
