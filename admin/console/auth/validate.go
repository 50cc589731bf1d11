package auth

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/postrider/postrider/admin/console/internal/guard"
)

const (
	minSecret  = 24
	minKey     = 32
	maxSession = 24 * time.Hour
)

// Validate reports all mistakes in the configuration of a console that listens at an address, such
// as "127.0.0.1:8080", ":8080" or "unix:/run/postrider.sock".
func (c Config) Validate(listen string) error {
	errs := c.problems()
	if !c.known() && !local(listen) {
		errs = append(errs, fmt.Errorf("auth: the console listens at %q, which others can reach, and nothing says who they are: "+
			"listen at 127.0.0.1, or configure tokens, OIDC or a proxy", listen))
	}
	return errors.Join(errs...)
}

// known reports whether a method of authentication is configured.
func (c Config) known() bool {
	return len(c.Tokens) > 0 || c.OIDC != nil || c.Proxy != nil && c.Proxy.UserHeader != ""
}

// local reports whether an address can only be reached from this machine.
func local(listen string) bool {
	if strings.HasPrefix(listen, "unix:") || strings.HasPrefix(listen, "/") {
		return true
	}
	host, _, err := net.SplitHostPort(listen)
	return err == nil && guard.Loopback(host)
}

// problems returns the mistakes that do not depend on where the console listens.
func (c Config) problems() (errs []error) {
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("auth: "+format, args...)) }
	for _, host := range c.Hosts {
		if host == "" || strings.ContainsAny(host, "/*@ ") {
			bad("host %q: want a name or an address, such as postrider.example.com, without scheme, path or *", host)
		}
	}
	if c.Payloads != "" && rank(c.Payloads) == 0 {
		bad("payloads: there is no role %q, only viewer, operator and admin", c.Payloads)
	}
	if c.Session < 0 || c.Session > maxSession {
		bad("session: %v: want more than 0, and at most %v", c.Session, maxSession)
	}
	if c.Rate < 0 {
		bad("rate: %v: want more than 0", c.Rate)
	}
	if n := len(c.SessionKey); n > 0 && n < minKey {
		bad("session key: %d bytes: want at least %d", n, minKey)
	}
	errs = append(errs, c.tokenProblems()...)
	if c.OIDC != nil {
		errs = append(errs, c.OIDC.problems(c.Hosts)...)
	}
	if c.Proxy != nil {
		errs = append(errs, c.Proxy.problems()...)
		if !c.known() {
			bad("proxy: it has no user header, and there are neither tokens nor OIDC: nothing says who comes through it")
		}
	}
	return errs
}

func (c Config) tokenProblems() (errs []error) {
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("auth: "+format, args...)) }
	owners := make(map[string]string)
	for i, t := range c.Tokens {
		if t.Name == "" {
			bad("token %d: it has no name; the record says by whom something was done", i+1)
		}
		if len(t.Secret) < minSecret {
			bad("token %d (%s): its secret has %d characters: want at least %d", i+1, t.Name, len(t.Secret), minSecret)
		} else if other, taken := owners[t.Secret]; taken {
			bad("token %d (%s): it has the secret of %s", i+1, t.Name, other)
		}
		owners[t.Secret] = t.Name
		if t.Role != "" && rank(t.Role) == 0 {
			bad("token %d (%s): there is no role %q, only viewer, operator and admin", i+1, t.Name, t.Role)
		}
	}
	return errs
}

func (o *OIDC) problems(hosts []string) (errs []error) {
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("auth: OIDC: "+format, args...)) }
	if _, err := secureURL(o.Issuer); err != nil {
		bad("issuer %q: %w", o.Issuer, err)
	}
	if o.ClientID == "" {
		bad("the client ID is empty")
	}
	if u, err := secureURL(o.RedirectURL); err != nil {
		bad("redirect URL %q: %w", o.RedirectURL, err)
	} else if !guard.Loopback(u.Host) && !slices.ContainsFunc(hosts, func(h string) bool { return strings.EqualFold(hostname(h), u.Hostname()) }) {
		bad("redirect URL %q: its host is not one of the hosts %q, so that people would be refused when they come back",
			o.RedirectURL, hosts)
	} else if !strings.HasSuffix(u.Path, "/auth/callback") || u.RawQuery != "" || u.Fragment != "" {
		bad("redirect URL %q: want the address of the console, and /auth/callback", o.RedirectURL)
	}
	if len(o.Roles) == 0 {
		bad("there are no roles, so no user could sign in")
	}
	return append(errs, rolesProblems("OIDC", o.Roles)...)
}

func (p *Proxy) problems() (errs []error) {
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("auth: proxy: "+format, args...)) }
	if len(p.From) == 0 {
		bad("from is empty: say which addresses are those of the proxy, or everybody could claim to be anybody")
	}
	for _, prefix := range p.From {
		if !prefix.IsValid() || prefix.Bits() == 0 {
			bad("from: %s is everywhere, so that everybody could claim to be anybody", prefix)
		}
	}
	if p.Role != "" && rank(p.Role) == 0 {
		bad("there is no role %q, only viewer, operator and admin", p.Role)
	}
	if p.UserHeader == "" && p.RoleHeader != "" {
		bad("the role header %q needs a user header", p.RoleHeader)
	}
	if p.UserHeader != "" && http.CanonicalHeaderKey(p.UserHeader) == http.CanonicalHeaderKey(p.RoleHeader) {
		bad("%q is both the user header and the role header", p.UserHeader)
	}
	if len(p.Roles) > 0 && p.RoleHeader == "" {
		bad("there are roles, and no role header that they are about")
	}
	return append(errs, rolesProblems("proxy", p.Roles)...)
}

func rolesProblems(of string, roles map[string]Role) (errs []error) {
	for _, value := range slices.Sorted(maps.Keys(roles)) {
		if rank(roles[value]) == 0 {
			errs = append(errs, fmt.Errorf("auth: %s: the role of %q: there is no role %q, only viewer, operator and admin",
				of, value, roles[value]))
		}
	}
	return errs
}

// secureURL parses an address that secrets are sent to, which must be encrypted or local.
func secureURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return nil, errors.New("it is not a URL")
	case u.Host == "" || u.User != nil:
		return nil, errors.New("want https://, a host, and no user")
	case u.Scheme == "https", u.Scheme == "http" && guard.Loopback(u.Host):
		return u, nil
	}
	return nil, errors.New("want https; http is only for loopback")
}

func hostname(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		return h
	}
	return strings.Trim(host, "[]")
}
