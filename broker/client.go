package broker

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"reflect"
	"slices"
	"strings"
)

// SplitHosts returns a URL for each host of one that has several, with commas in between, each with all that was said besides; none if
// there is nothing between two commas. Package url does not know such URLs.
func SplitHosts(address string) (list []string) {
	scheme, rest, _ := strings.Cut(address, "://")
	at := strings.LastIndexByte(rest, '@') + 1
	end := strings.IndexAny(rest[at:], "/?")
	if end < 0 {
		end = len(rest) - at
	}
	for host := range strings.SplitSeq(rest[at:at+end], ",") {
		if host == "" {
			return nil
		}
		list = append(list, scheme+"://"+rest[:at]+host+rest[at+end:])
	}
	return list
}

// Handshake does the TLS handshake on a connection to an address, whose host is the server's name unless the configuration has one. It closes the
// connection if that fails.
func Handshake(ctx context.Context, conn net.Conn, address string, config *tls.Config) (net.Conn, error) {
	if config.ServerName == "" {
		config = config.Clone()
		config.ServerName, _, _ = net.SplitHostPort(address)
	}
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return secure, nil
}

// Refuse reports each field of a client's options, a struct, that is set though a caller cannot, with the reason that refused has for it.
func Refuse(options any, refused map[string]string) error {
	var errs []error
	fields := reflect.ValueOf(options)
	for _, name := range slices.Sorted(maps.Keys(refused)) {
		if !fields.FieldByName(name).IsZero() { // panics if the client has no such option any more
			errs = append(errs, fmt.Errorf("the client has %s: %s", name, refused[name]))
		}
	}
	return errors.Join(errs...)
}
