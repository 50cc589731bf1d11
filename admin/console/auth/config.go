// Package auth authenticates the users of the console, and authorizes what they do.
package auth

import (
	"cmp"
	"context"
	"net/netip"
	"time"
)

// Role is a set of permissions. Each role includes those before it.
type Role string

const (
	// Viewer sees everything but payloads and the values of headers.
	Viewer Role = "viewer"
	// Operator sees payloads, and retries, skips, parks, edits, replays, pauses.
	Operator Role = "operator"
	// Admin also discards, rewinds, adds and removes feeds.
	Admin Role = "admin"
)

// Identity is an authenticated user.
type Identity struct {
	Name string
	Role Role
	Via  string // local, token, oidc or proxy
}

// Config configures authentication. Several methods can be combined.
type Config struct {
	// Hosts are the host names of the console, such as "postrider.example.com". Requests for other
	// hosts are refused, which prevents DNS rebinding by other web sites. Loopback addresses and
	// "localhost" are always allowed. Defaults to none.
	Hosts []string
	// Tokens are fixed secrets, one per person or program. Defaults to none.
	Tokens []Token
	// OIDC configures sign-in with an OpenID Connect provider. Defaults to none.
	OIDC *OIDC
	// Proxy configures trust in a reverse proxy. Defaults to none.
	Proxy *Proxy
	// Payloads is the lowest role that may see payloads and the values of headers. Defaults to
	// Operator.
	Payloads Role
	// Session is how long an idle session stays valid, at most 24 h. Every session ends after 24 h.
	// Defaults to 8 h.
	Session time.Duration
	// SessionKey encrypts session cookies. It has at least 32 random bytes, is the same in all
	// processes behind one address, and must never be logged. Defaults to a random key, so that
	// sessions end with the process.
	SessionKey []byte
	// Rate is the average number of requests per second that one client may make. Defaults to 50.
	Rate float64
}

// Token is a fixed secret.
type Token struct {
	Name   string // of its owner, for the record
	Secret string // at least 24 characters; must never be logged
	Role   Role   // defaults to Viewer
}

// OIDC is an OpenID Connect provider. The console uses the authorization code flow with PKCE.
type OIDC struct {
	Issuer       string
	ClientID     string
	ClientSecret string   // empty for a public client; must never be logged
	RedirectURL  string   // the console's own address, and "/auth/callback"
	Scopes       []string // defaults to openid, profile, email
	// RolesClaim is the claim that holds the user's groups or roles. Defaults to "groups".
	RolesClaim string
	// Roles maps values of the claim to roles; the highest counts. A user without a role is
	// refused.
	Roles map[string]Role
	// NameClaim is the claim that names the user in the audit log. Defaults to "email", then "sub".
	NameClaim string
}

// Proxy configures which proxies and headers to trust. The proxies in From are also trusted for the
// client's address (X-Forwarded-For) and for TLS (X-Forwarded-Proto).
type Proxy struct {
	From       []netip.Prefix // addresses of proxies; headers from other addresses are ignored
	UserHeader string         // such as "X-Forwarded-User"; empty: tokens or OIDC authenticate users
	RoleHeader string         // such as "X-Forwarded-Role"; empty: every user has Role
	Role       Role           // of users without RoleHeader. Defaults to Viewer.
	// Roles maps values of RoleHeader, such as groups, to roles; the highest counts. Several values
	// are separated by "," or "|". A user whose values are all unknown is refused. Defaults to the
	// names of the roles themselves.
	Roles map[string]Role
}

type identityKey struct{}

// With returns a context with the identity.
func With(ctx context.Context, who Identity) context.Context {
	return context.WithValue(ctx, identityKey{}, who)
}

// From returns the identity in the context.
func From(ctx context.Context) (Identity, bool) {
	who, ok := ctx.Value(identityKey{}).(Identity)
	return who, ok
}

// SeesPayloads reports whether a role may see payloads and the values of headers.
func (c Config) SeesPayloads(role Role) bool { return role.May(cmp.Or(c.Payloads, Operator)) }

// May reports whether the role includes another role.
func (r Role) May(what Role) bool { return rank(r) >= rank(what) && rank(what) > 0 }

func rank(r Role) int {
	switch r {
	case Viewer:
		return 1
	case Operator:
		return 2
	case Admin:
		return 3
	}
	return 0
}
