package config

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"
)

// Console configures the web console.
type Console struct {
	// Listen is a host and port, such as "127.0.0.1:8711". Defaults to none: there is no console.
	Listen string
	// Prefix is the URL path under which the console is served. Defaults to "/".
	Prefix string
	// CertFile and KeyFile are PEM files of a certificate and its key. If they are set, the console
	// serves HTTPS only. It reloads them when they change. Defaults to none.
	CertFile, KeyFile string
	// Hosts are the host names of the console, in addition to those of this machine. Defaults to
	// none.
	Hosts []string
	// Tokens are fixed secrets, by the name of their owner. Defaults to none.
	Tokens map[string]ConsoleToken
	// OIDC configures sign-in with an OpenID Connect provider. Defaults to none.
	OIDC *ConsoleOIDC
	// Proxy configures trust in a reverse proxy. Defaults to none.
	Proxy *ConsoleProxy
	// Payloads is the lowest role that may see payloads. Defaults to operator.
	Payloads string
	// Redact are JSON paths that are hidden in all payloads, from every role. Defaults to none.
	Redact []string
	// TraceURL is the URL of a trace, with {trace_id} as placeholder. Defaults to none.
	TraceURL string
	// Session is how long an idle session stays valid. Defaults to 8 h.
	Session time.Duration
	// SessionKey encrypts sessions. Processes that share it accept each other's sessions, also
	// after a restart. It has at least 32 characters, and must never be logged. Defaults to a
	// random key of this process.
	SessionKey string
}

// ConsoleToken is a secret and the role that it grants.
type ConsoleToken struct {
	// Token has at least 24 characters, and must never be logged. Required.
	Token string
	// Role is viewer, operator or admin. Defaults to viewer.
	Role string
}

// ConsoleOIDC configures an OpenID Connect provider.
type ConsoleOIDC struct {
	// Issuer, ClientID and RedirectURL are required; ClientSecret must never be logged.
	Issuer, ClientID, ClientSecret, RedirectURL string
	// Scopes default to openid, profile and email.
	Scopes []string
	// RolesClaim is the claim that lists a user's groups. Defaults to groups.
	RolesClaim string
	// NameClaim is the claim that names the user in the audit log. Defaults to email, then sub.
	NameClaim string
	// Roles maps values of RolesClaim to roles. At least one.
	Roles map[string]string
}

// ConsoleProxy configures which proxies and headers to trust.
type ConsoleProxy struct {
	// From are the address ranges of trusted proxies, such as "10.0.0.0/8". At least one.
	From []string
	// UserHeader holds the user's name. Defaults to none: the proxy is trusted for the client
	// address only.
	UserHeader string
	// RoleHeader holds the role, or groups. Defaults to none: every user has Role.
	RoleHeader string
	// Roles maps values of RoleHeader to roles. Defaults to none: the values are role names.
	Roles map[string]string
	// Role is the role of users for whom RoleHeader names none. Defaults to viewer.
	Role string
}

// Validate reports a Listen that is not a host and port, or that other machines can reach although
// no authentication is configured. The other settings are checked together with the file.
func (c *Console) Validate() error {
	if c.Listen == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(c.Listen)
	if _, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil {
		return fmt.Errorf("%q is not a host and port such as 127.0.0.1:8711", c.Listen)
	}
	if !isLoopback(host) && len(c.Tokens) == 0 && c.OIDC == nil && (c.Proxy == nil || c.Proxy.UserHeader == "") {
		return fmt.Errorf("other machines can call %s, and no authentication is configured: "+
			"want console.tokens, console.oidc or console.proxy.user_header, or 127.0.0.1", c.Listen)
	}
	return nil
}

var consoleRoles = []string{"viewer", "operator", "admin"}

// check reports all mistakes, each with its path.
func (c *Console) check(wrong func(path, format string, args ...any)) {
	role := func(path, value string) {
		if value != "" && !slices.Contains(consoleRoles, value) {
			wrong(path, "%q is not a role: want viewer, operator or admin", value)
		}
	}
	role("console.payloads", c.Payloads)
	if (c.CertFile == "") != (c.KeyFile == "") {
		wrong("console.cert_file", "cert_file is %q and key_file is %q: want both, or none", c.CertFile, c.KeyFile)
	}
	if c.SessionKey != "" && len(c.SessionKey) < 32 {
		wrong("console.session_key", "it has %d characters, and could be guessed: want at least 32", len(c.SessionKey))
	}
	for name, t := range c.Tokens {
		if len(t.Token) < 24 {
			wrong("console.tokens."+name+".token", "it has %d characters, and could be guessed: want at least 24", len(t.Token))
		}
		role("console.tokens."+name+".role", t.Role)
	}
	if o := c.OIDC; o != nil {
		for _, f := range []struct{ key, value string }{{"issuer", o.Issuer}, {"client_id", o.ClientID}, {"redirect_url", o.RedirectURL}} {
			if f.value == "" {
				wrong("console.oidc."+f.key, "it is missing")
			}
		}
		if len(o.Roles) == 0 {
			wrong("console.oidc.roles", "there are none, so no user could sign in: want a role for at least one value of the claim")
		}
		for name, r := range o.Roles {
			role("console.oidc.roles."+name, r)
		}
	}
	if p := c.Proxy; p != nil {
		if len(p.From) == 0 {
			wrong("console.proxy.from", "it is missing: no proxy would be trusted")
		}
		for name, r := range p.Roles {
			role("console.proxy.roles."+name, r)
		}
		for i, from := range p.From {
			if _, err := netip.ParsePrefix(from); err != nil {
				wrong(item("console.proxy.from", i), "%q is not a range of addresses such as 10.0.0.0/8", from)
			}
		}
		role("console.proxy.role", p.Role)
	}
	if err := c.Validate(); err != nil {
		wrong("console.listen", "%v", err)
	}
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
