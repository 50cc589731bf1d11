// Package auth decides who may use the console, and what they may do there.
package auth

import (
	"cmp"
	"context"
	"net/netip"
	"time"
)

// Role is how much somebody may do. Each may do what those before it may.
type Role string

const (
	// Viewer sees everything but payloads and the values of headers.
	Viewer Role = "viewer"
	// Operator sees payloads, and retries, skips, parks, edits, replays, pauses.
	Operator Role = "operator"
	// Admin also discards, rewinds, adds and removes feeds.
	Admin Role = "admin"
)

// Identity is who has asked.
type Identity struct {
	Name string
	Role Role
	Via  string // local, token, oidc or proxy
}

// Config says how people are known. They may be known in several ways.
type Config struct {
	// Hosts are the names under which the console is reached, such as "postrider.example.com"; requests for other hosts are
	// refused, so that no web page elsewhere can make a name lead here. Loopback addresses and "localhost" always count.
	// Defaults to none others.
	Hosts []string
	// Tokens are fixed secrets, each of one person or program. Defaults to none.
	Tokens []Token
	// OIDC signs people in elsewhere. Defaults to not.
	OIDC *OIDC
	// Proxy trusts what a proxy in front says. Defaults to not.
	Proxy *Proxy
	// Payloads is the least role that sees payloads and the values of headers. Defaults to Operator.
	Payloads Role
	// Session is how long somebody stays signed in without doing anything, at most 24 h. After 24 h everybody signs in again.
	// Defaults to 8 h.
	Session time.Duration
	// SessionKey seals the cookies of those who are signed in: at least 32 random bytes, the same in all processes behind one
	// address; must never be logged. Defaults to one that the process makes up: who is signed in is so until it ends.
	SessionKey []byte
	// Rate is how many requests a second one client may make, on average. Defaults to 50.
	Rate float64
}

// Token is a fixed secret.
type Token struct {
	Name   string // of whom it belongs to, for the record
	Secret string // at least 24 characters; must never be logged
	Role   Role   // defaults to Viewer
}

// OIDC is an OpenID Connect provider, asked with code and PKCE.
type OIDC struct {
	Issuer       string
	ClientID     string
	ClientSecret string   // empty for a public client; must never be logged
	RedirectURL  string   // the console's own address, and "/auth/callback"
	Scopes       []string // defaults to openid, profile, email
	// RolesClaim is the claim that holds the person's groups or roles. Defaults to "groups".
	RolesClaim string
	// Roles gives a role for each value of the claim; the highest counts. Nobody gets in without one.
	Roles map[string]Role
	// NameClaim is the claim for the record. Defaults to "email", then "sub".
	NameClaim string
}

// Proxy says whom to believe. Those proxies are also believed about the address of the client (X-Forwarded-For) and about TLS
// (X-Forwarded-Proto).
type Proxy struct {
	From       []netip.Prefix // addresses of proxies; headers of others are ignored
	UserHeader string         // such as "X-Forwarded-User"; empty: people are known by tokens or OIDC
	RoleHeader string         // such as "X-Forwarded-Role"; empty: everybody has Role
	Role       Role           // where RoleHeader is empty or absent. Defaults to Viewer.
	// Roles gives a role for each value of RoleHeader, such as a group; the highest counts. Several values are separated by
	// "," or "|". Nobody gets in whose values are all unknown. Defaults to the names of the roles themselves.
	Roles map[string]Role
}

type identityKey struct{}

// With returns a context that knows who has asked.
func With(ctx context.Context, who Identity) context.Context {
	return context.WithValue(ctx, identityKey{}, who)
}

// From returns who has asked.
func From(ctx context.Context) (Identity, bool) {
	who, ok := ctx.Value(identityKey{}).(Identity)
	return who, ok
}

// SeesPayloads reports whether a role sees payloads and the values of headers.
func (c Config) SeesPayloads(role Role) bool { return role.May(cmp.Or(c.Payloads, Operator)) }

// May reports whether the role includes another.
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
