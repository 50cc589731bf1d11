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
	// global is where public IPv6 addresses are; all others are special.
	global = netip.MustParsePrefix("2000::/3")
	// special are the networks that are not public, of IPv4 and within global.
	special, _ = networks(
		// This machine, private networks, carriers' NAT, link-local with the clouds' metadata.
		"0.0.0.0/8", "127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16",
		"168.63.129.16/32", // the metadata of Azure
		// Documentation.
		"192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20",
		// Protocol assignments with Teredo, benchmarking, 6to4 (which holds an IPv4 address), multicast, reserved.
		"192.0.0.0/24", "2001::/23", "198.18.0.0/15", "192.88.99.0/24", "2002::/16", "224.0.0.0/4", "240.0.0.0/4",
	)
)

// ForbiddenError means that the endpoint's address is not public, and not among those allowed.
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

// control is asked by a net.Dialer for each address, when it is resolved and before it is used.
func (g *guard) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("webhook: cannot tell whether %q is a public address", address)
	}
	return g.check(to.Addr())
}

func (g *guard) check(addr netip.Addr) error {
	addr = addr.Unmap().WithZone("") // networks contain neither mapped addresses nor zones
	contains := func(p netip.Prefix) bool { return p.Contains(addr) }
	isPublic := !slices.ContainsFunc(special, contains) && (addr.Is4() || global.Contains(addr))
	if !isPublic && !slices.ContainsFunc(g.allowed, contains) {
		return &ForbiddenError{addr}
	}
	if nat64.Contains(addr) { // allowed, but not as a way around
		b := addr.As16()
		return g.check(netip.AddrFrom4([4]byte(b[12:])))
	}
	return nil
}
