package guard

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Client returns the client's address of a request. It trusts X-Forwarded-For only as far as
// trusted proxies have written it: it reads the list from the end, where the nearest proxy has
// appended, up to the first address that is not a proxy. The zero address stands for all clients
// without one, such as those of a Unix socket.
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

// parseHop parses an address, with or without a port.
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

// Within reports whether an address is in one of the prefixes.
func Within(ip netip.Addr, prefixes []netip.Prefix) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// Secure reports whether the client uses TLS. It trusts X-Forwarded-Proto of trusted proxies.
func Secure(r *http.Request, proxies []netip.Prefix) bool {
	if r.TLS != nil {
		return true
	}
	said := r.Header.Values("X-Forwarded-Proto")
	return len(said) == 1 && strings.EqualFold(said[0], "https") && Within(Peer(r), proxies)
}
