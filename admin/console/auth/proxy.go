package auth

import (
	"cmp"
	"net/http"
	"net/netip"
	"strings"

	"github.com/postrider/postrider/admin/console/internal/guard"
)

// proxies returns the addresses of trusted proxies.
func (a *Auth) proxies() []netip.Prefix {
	if a.cfg.Proxy == nil {
		return nil
	}
	return a.cfg.Proxy.From
}

// byProxy returns the identity that a trusted proxy has set. It removes the headers from all other
// requests, so that later handlers cannot trust them.
func (a *Auth) byProxy(r *http.Request) (Identity, *refusal, bool) {
	p := a.cfg.Proxy
	if p == nil || p.UserHeader == "" {
		return Identity{}, nil, false
	}
	if !guard.Within(guard.Peer(r), p.From) {
		r.Header.Del(p.UserHeader)
		if p.RoleHeader != "" {
			r.Header.Del(p.RoleHeader)
		}
		return Identity{}, nil, false
	}
	users := r.Header.Values(p.UserHeader)
	if len(users) == 0 {
		return Identity{}, nil, false
	}
	// A proxy that only appends a header leaves that of the client in first place.
	if len(users) > 1 || p.RoleHeader != "" && len(r.Header.Values(p.RoleHeader)) > 1 {
		return Identity{}, refused("The proxy has sent the header that says who asks more than once. It must replace what clients send."), true
	}
	name := tidy(users[0])
	if name == "" {
		return Identity{}, nil, false
	}
	role := p.role(r.Header)
	if role == "" {
		return Identity{}, refused("The proxy knows who you are, but not of a role that you have here."), true
	}
	return Identity{Name: name, Role: role, Via: "proxy"}, nil, true
}

func refused(detail string) *refusal {
	return &refusal{problem: guard.Problem{Status: http.StatusForbidden, Detail: detail}}
}

// role returns the highest role in the header, or "" if there is none.
func (p *Proxy) role(h http.Header) (best Role) {
	if p.RoleHeader == "" || len(h.Values(p.RoleHeader)) == 0 {
		return cmp.Or(p.Role, Viewer)
	}
	for value := range strings.FieldsFuncSeq(h.Get(p.RoleHeader), func(c rune) bool { return c == ',' || c == '|' }) {
		value = strings.TrimSpace(value)
		role := Role(strings.ToLower(value))
		if len(p.Roles) > 0 {
			role = p.Roles[value]
		}
		if rank(role) > rank(best) {
			best = role
		}
	}
	return best
}
