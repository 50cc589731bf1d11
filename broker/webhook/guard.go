package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"syscall"
)

func networks(texts ...string) (list []netip.Prefix, err error) {
	for _, text := range texts {
		prefix, parseErr := netip.ParsePrefix(text)
		if parseErr != nil {
			err = errors.Join(err, fmt.Errorf("webhook: AllowPrivate: %q is not a network such as 10.1.0.0/16", text))
		}
		list = append(list, prefix)
	}
	return list, err
}

var (
	loopback, _ = networks("127.0.0.0/8", "::1/128")
	nat64       = netip.MustParsePrefix("64:ff9b::/96")
	// global contains all public IPv6 addresses.
	global = netip.MustParsePrefix("2000::/3")
	// special lists networks that are not public: IPv4 ones, and those within global.
	special, _ = networks(
		// This machine, private networks, carrier-grade NAT, link-local including cloud metadata.
		"0.0.0.0/8", "127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16",
		"168.63.129.16/32", // Azure's metadata
		// Documentation.
		"192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20",
		// Protocol assignments including Teredo, benchmarking, 6to4 (which embeds an IPv4 address),
		// multicast, reserved.
		"192.0.0.0/24", "2001::/23", "198.18.0.0/15", "192.88.99.0/24", "2002::/16", "224.0.0.0/4", "240.0.0.0/4",
	)
)

// ForbiddenError means that the endpoint's address is neither public nor allowed by the
// configuration.
type ForbiddenError struct{ Addr netip.Addr }

func (e *ForbiddenError) Error() string {
	return fmt.Sprintf("webhook: the endpoint's address %s is not public; if it is meant, "+
		"set AllowPrivate (allow_private) or, for this machine, AllowLoopback (allow_loopback)", e.Addr)
}

// guard decides which addresses may be dialled.
type guard struct{ allowed []netip.Prefix }

func newGuard(c *Config) (*guard, error) {
	allowed, err := networks(c.AllowPrivate...)
	if c.AllowLoopback {
		allowed = append(allowed, loopback...)
	}
	return &guard{allowed}, err
}

// control is called by a net.Dialer for each resolved address before it connects.
func (g *guard) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("webhook: cannot tell whether %q is a public address", address)
	}
	return g.check(to.Addr())
}

func (g *guard) check(addr netip.Addr) error {
	addr = addr.Unmap().WithZone("") // prefixes match neither mapped addresses nor zones
	contains := func(p netip.Prefix) bool { return p.Contains(addr) }
	isPublic := !slices.ContainsFunc(special, contains) && (addr.Is4() || global.Contains(addr))
	if !isPublic && !slices.ContainsFunc(g.allowed, contains) {
		return &ForbiddenError{addr}
	}
	if nat64.Contains(addr) { // the embedded IPv4 address must be allowed too
		b := addr.As16()
		return g.check(netip.AddrFrom4([4]byte(b[12:])))
	}
	return nil
}
