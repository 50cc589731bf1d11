package auth

// claims are what a provider says about somebody.
type claims map[string]any

// at returns a claim. A name with dots is that of a claim, or the way to one inside of others, such as realm_access.roles. The names on
// the way may have dots too: in resource_access.console.example.com.roles one is that of a client.
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

// values returns the strings of a claim that is one, or a list of them.
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

// role is the highest that somebody has; "" if none. An address that nobody has verified gives none: people can type in any.
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

// verified reports whether the provider vouches for the address. Some say it in a string.
func (c claims) verified() bool { return c["email_verified"] == true || c["email_verified"] == "true" }

// name is for the record.
func (c claims) name(claim string) string {
	subject, _ := c["sub"].(string)
	if claim == "" {
		// Absent is common, and then the provider's own list is meant. False means that people have typed it in.
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
