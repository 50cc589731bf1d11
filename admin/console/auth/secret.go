package auth

import (
	"fmt"
	"log/slog"
)

// The types below hold secrets. Whoever prints, logs or encodes them gets the rest.

// String says whose token it is.
func (t Token) String() string { return fmt.Sprintf("token of %s (%s)", t.Name, t.Role) }

// GoString says whose token it is.
func (t Token) GoString() string { return t.String() }

// LogValue says whose token it is.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }

// MarshalText says whose token it is.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// String names the provider and the client.
func (o OIDC) String() string { return fmt.Sprintf("OIDC of %s for %s", o.Issuer, o.ClientID) }

// GoString names the provider and the client.
func (o OIDC) GoString() string { return o.String() }

// LogValue names the provider and the client.
func (o OIDC) LogValue() slog.Value { return slog.StringValue(o.String()) }

// MarshalText names the provider and the client.
func (o OIDC) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// String says in which ways people are known.
func (c Config) String() string {
	return fmt.Sprintf("%d tokens, OIDC: %t, proxy: %t, hosts: %q", len(c.Tokens), c.OIDC != nil, c.Proxy != nil, c.Hosts)
}

// GoString says in which ways people are known.
func (c Config) GoString() string { return c.String() }

// LogValue says in which ways people are known.
func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

// MarshalText says in which ways people are known.
func (c Config) MarshalText() ([]byte, error) { return []byte(c.String()), nil }
