package guard

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Client returns the address that a request comes from. What X-Forwarded-For says counts only as far as proxies say it: the
// list is read from its end, where the nearest proxy has written, up to the first address that is not a proxy.
// The zero address stands for all that have none, such as users of a Unix socket.
func Client(r *http.Request, proxies []netip.Prefix) netip.Addr {
	at := Peer(r)
	if !Within(at, proxies) {
		return at
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		next, ok := parseHop(strings.TrimSpace(hop))
		if !ok {
			break
		}
		at = next
		if !Within(at, proxies) {
			break
		}
	}
	return at
}

// parseHop reads an address; some proxies add the port.
func parseHop(s string) (netip.Addr, bool) {
	if ip, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return ip.Unmap().WithZone(""), true
	}
	ap, err := netip.ParseAddrPort(s)
	return ap.Addr().Unmap().WithZone(""), err == nil
}

// Peer returns the address at the other end of the connection.
func Peer(r *http.Request) netip.Addr {
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap().WithZone("")
}

// Within reports whether an address is one of those.
func Within(ip netip.Addr, prefixes []netip.Prefix) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// Secure reports whether the client has asked by TLS. X-Forwarded-Proto counts if a proxy says so.
func Secure(r *http.Request, proxies []netip.Prefix) bool {
	if r.TLS != nil {
		return true
	}
	said := r.Header.Values("X-Forwarded-Proto")
	return len(said) == 1 && strings.EqualFold(said[0], "https") && Within(Peer(r), proxies)
}
