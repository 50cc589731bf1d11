package auth

// claims are the claims of a provider about a user.
type claims map[string]any

// at returns a claim. A name with dots is the name of a claim or a path into nested claims, such as
// realm_access.roles. The parts of a path may contain dots too: in
// resource_access.console.example.com.roles, one part is the name of a client.
func (c claims) at(name string) any { return inside(c, name) }

func inside(of map[string]any, name string) any {
	if v, ok := of[name]; ok {
		return v
	}
	for i, char := range name {
		if char != '.' {
			continue
		}
		if next, ok := of[name[:i]].(map[string]any); ok {
			if v := inside(next, name[i+1:]); v != nil {
				return v
			}
		}
	}
	return nil
}

// values returns the strings of a claim that is a string or a list of strings.
func (c claims) values(name string) (out []string) {
	switch v := c.at(name).(type) {
	case string:
		out = append(out, v)
	case []any:
		for _, item := range v {
			if s, ok := item.(string); ok {
				out = append(out, s)
			}
		}
	}
	return out
}

// role returns the highest role of the user, or "". An unverified email address gives no role,
// because users can enter any address.
func (c claims) role(cfg OIDC) (best Role) {
	if cfg.RolesClaim == "email" && !c.verified() {
		return ""
	}
	for _, value := range c.values(cfg.RolesClaim) {
		if role := cfg.Roles[value]; rank(role) > rank(best) {
			best = role
		}
	}
	return best
}

// verified reports whether the provider has verified the email address. Some providers send a
// string.
func (c claims) verified() bool { return c["email_verified"] == true || c["email_verified"] == "true" }

// name returns the user's name for the audit log.
func (c claims) name(claim string) string {
	subject, _ := c["sub"].(string)
	if claim == "" {
		// Some providers never send email_verified, and maintain the addresses themselves. If it is
		// false, the user has entered the address.
		if said, ok := c["email_verified"]; ok && !c.verified() && said != nil {
			return tidy(subject)
		}
		claim = "email"
	}
	if name, ok := c.at(claim).(string); ok && tidy(name) != "" {
		return tidy(name)
	}
	return tidy(subject)
}
