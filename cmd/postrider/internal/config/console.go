package config

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"
)

// Console is where people look after messages with a browser.
type Console struct {
	// Listen is a host and port, such as "127.0.0.1:8711". Defaults to none: there is no console.
	Listen string
	// Prefix is the path that it is reached under. Defaults to "/".
	Prefix string
	// CertFile and KeyFile are PEM files of a certificate and its key. With them the console speaks HTTPS, and no HTTP. They are read again when
	// they change. Defaults to none.
	CertFile, KeyFile string
	// Hosts are the names that it is reached by, beside those of this machine. Defaults to none.
	Hosts []string
	// Tokens are fixed secrets, by the name of whom each belongs to. Defaults to none.
	Tokens map[string]ConsoleToken
	// OIDC signs people in elsewhere. Defaults to not.
	OIDC *ConsoleOIDC
	// Proxy trusts what a proxy in front says. Defaults to not.
	Proxy *ConsoleProxy
	// Payloads is the least role that sees payloads. Defaults to operator.
	Payloads string
	// Redact are JSON paths of payloads that nobody sees. Defaults to none.
	Redact []string
	// TraceURL leads to a trace, with {trace_id} in it. Defaults to none.
	TraceURL string
	// Session is how long somebody stays signed in without doing anything. Defaults to 8 h.
	Session time.Duration
	// SessionKey makes sessions good for all processes that share it, and over restarts; it has at least 32 characters, and
	// must never be logged. Defaults to one of this process alone.
	SessionKey string
}

// ConsoleToken is one secret, and what it lets its owner do.
type ConsoleToken struct {
	// Token has at least 24 characters, and must never be logged. Required.
	Token string
	// Role is viewer, operator or admin. Defaults to viewer.
	Role string
}

// ConsoleOIDC is an OpenID Connect provider.
type ConsoleOIDC struct {
	// Issuer, ClientID and RedirectURL are required; ClientSecret must never be logged.
	Issuer, ClientID, ClientSecret, RedirectURL string
	// Scopes default to openid, profile and email.
	Scopes []string
	// RolesClaim is the claim with a person's groups. Defaults to groups.
	RolesClaim string
	// NameClaim is the claim for the record. Defaults to email, then sub.
	NameClaim string
	// Roles gives a role for each value of that claim. At least one.
	Roles map[string]string
}

// ConsoleProxy says whom to believe.
type ConsoleProxy struct {
	// From are addresses of proxies, such as "10.0.0.0/8". At least one.
	From []string
	// UserHeader holds the person's name. Defaults to none: the proxy is only believed where a request came from.
	UserHeader string
	// RoleHeader holds the role, or groups. Defaults to none: everybody has Role.
	RoleHeader string
	// Roles gives a role for each value of RoleHeader. Defaults to the values being roles.
	Roles map[string]string
	// Role is that of people of whom RoleHeader says nothing. Defaults to viewer.
	Role string
}

// Validate reports an address that is none, or that is open to everybody; the rest is checked with the file.
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

// check reports everything that is wrong, with the path of each.
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
			wrong("console.oidc.roles", "there are none, so nobody could come in: want a role for at least one value of the claim")
		}
		for name, r := range o.Roles {
			role("console.oidc.roles."+name, r)
		}
	}
	if p := c.Proxy; p != nil {
		if len(p.From) == 0 {
			wrong("console.proxy.from", "it is missing: nobody would be believed")
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
