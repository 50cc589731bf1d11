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

// SplitHosts splits a URL that lists several hosts, separated by commas, into one URL per host,
// with the same credentials, path and query. It returns nil if one of the hosts is empty. Package
// url does not parse such URLs.
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

// Handshake performs the TLS handshake on conn. The server name is the host of address, unless the
// configuration sets one. Handshake closes the connection on failure.
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

// Refuse returns an error for each field of options, a client's options struct, that is set
// although callers may not set it. The map refused gives the reason per field.
func Refuse(options any, refused map[string]string) error {
	var errs []error
	fields := reflect.ValueOf(options)
	for _, name := range slices.Sorted(maps.Keys(refused)) {
		if !fields.FieldByName(name).IsZero() { // panics if the client no longer has this option
			errs = append(errs, fmt.Errorf("the client has %s: %s", name, refused[name]))
		}
	}
	return errors.Join(errs...)
}
