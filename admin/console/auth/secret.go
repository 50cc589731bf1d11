package auth

import (
	"fmt"
	"log/slog"
)

// The types below hold secrets. These methods keep secrets out of printed, logged and encoded
// values.

// String describes the token without its secret.
func (t Token) String() string { return fmt.Sprintf("token of %s (%s)", t.Name, t.Role) }

// GoString describes the token without its secret.
func (t Token) GoString() string { return t.String() }

// LogValue describes the token without its secret.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }

// MarshalText describes the token without its secret.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// String returns the issuer and the client ID.
func (o OIDC) String() string { return fmt.Sprintf("OIDC of %s for %s", o.Issuer, o.ClientID) }

// GoString returns the issuer and the client ID.
func (o OIDC) GoString() string { return o.String() }

// LogValue returns the issuer and the client ID.
func (o OIDC) LogValue() slog.Value { return slog.StringValue(o.String()) }

// MarshalText returns the issuer and the client ID.
func (o OIDC) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// String lists the configured methods without secrets.
func (c Config) String() string {
	return fmt.Sprintf("%d tokens, OIDC: %t, proxy: %t, hosts: %q", len(c.Tokens), c.OIDC != nil, c.Proxy != nil, c.Hosts)
}

// GoString lists the configured methods without secrets.
func (c Config) GoString() string { return c.String() }

// LogValue lists the configured methods without secrets.
func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

// MarshalText lists the configured methods without secrets.
func (c Config) MarshalText() ([]byte, error) { return []byte(c.String()), nil }
