package config

import (
	"go.yaml.in/yaml/v3"
)

func (r *reader) console(n *yaml.Node, path string) Console {
	var c Console
	r.fields(n, path, map[string]func(*yaml.Node, string){
		"listen": r.textInto(&c.Listen),
		"prefix": r.textInto(&c.Prefix),
		"hosts":  r.textsInto(&c.Hosts),

		"cert_file": r.textInto(&c.CertFile),
		"key_file":  r.textInto(&c.KeyFile),
		"tokens": func(n *yaml.Node, path string) {
			c.Tokens = make(map[string]ConsoleToken)
			r.named(n, path, func(name string, n *yaml.Node, path string) {
				var t ConsoleToken
				r.fields(n, path, map[string]func(*yaml.Node, string){"token": r.textInto(&t.Token), "role": r.textInto(&t.Role)})
				c.Tokens[name] = t
			})
		},
		"oidc":      func(n *yaml.Node, path string) { c.OIDC = r.consoleOIDC(n, path) },
		"proxy":     func(n *yaml.Node, path string) { c.Proxy = r.consoleProxy(n, path) },
		"payloads":  r.textInto(&c.Payloads),
		"redact":    r.textsInto(&c.Redact),
		"trace_url": r.textInto(&c.TraceURL),
		"session":   r.durationInto(&c.Session),

		"session_key": r.textInto(&c.SessionKey),
	})
	return c
}

func (r *reader) consoleOIDC(n *yaml.Node, path string) *ConsoleOIDC {
	o := &ConsoleOIDC{Roles: make(map[string]string)}
	r.fields(n, path, map[string]func(*yaml.Node, string){
		"issuer":        r.textInto(&o.Issuer),
		"client_id":     r.textInto(&o.ClientID),
		"client_secret": r.textInto(&o.ClientSecret),
		"redirect_url":  r.textInto(&o.RedirectURL),
		"scopes":        r.textsInto(&o.Scopes),
		"roles_claim":   r.textInto(&o.RolesClaim),
		"name_claim":    r.textInto(&o.NameClaim),
		"roles":         r.rolesInto(o.Roles),
	})
	return o
}

func (r *reader) rolesInto(roles map[string]string) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		r.named(n, path, func(name string, n *yaml.Node, path string) { roles[name], _ = r.text(n, path) })
	}
}

func (r *reader) consoleProxy(n *yaml.Node, path string) *ConsoleProxy {
	p := &ConsoleProxy{Roles: make(map[string]string)}
	r.fields(n, path, map[string]func(*yaml.Node, string){
		"from": r.textsInto(&p.From), "user_header": r.textInto(&p.UserHeader), "role_header": r.textInto(&p.RoleHeader), "role": r.textInto(&p.Role),
		"roles": r.rolesInto(p.Roles),
	})
	return p
}

func consoleSchema() object {
	role := func(doc, fallback string) object {
		return object{"enum": consoleRoles, "default": fallback, "description": doc}
	}
	roles := func(doc string) object {
		return object{"type": "object", "description": doc, "additionalProperties": object{"enum": consoleRoles}}
	}
	texts := func(doc string) object {
		return object{"description": doc, "anyOf": []any{object{"type": "string"}, object{"type": "array", "items": object{"type": "string"}}}}
	}
	return strictObject(object{
		"listen":    with(text("Host and port of the web console. Default: none."), "examples", []string{"127.0.0.1:8711"}),
		"prefix":    with(text("URL path of the console."), "default", "/"),
		"cert_file": text("PEM file of a certificate. With it and key_file the console serves HTTPS only. It is reloaded when it changes. Default: none."),
		"key_file":  text("PEM file of the key of that certificate. Default: none."),
		"hosts":     texts("Host names of the console, in addition to those of this machine. Requests for others are refused."),
		"tokens": with(namedBy("Fixed secrets, by the name of their owner.", strictObject(object{
			"token": text("At least 24 characters, such as \"${ANN_TOKEN}\"."),
			"role":  role("Role of its owner.", "viewer"),
		}, "token")), "minProperties", 0),
		"oidc": strictObject(object{
			"issuer":        text("Address of the OpenID Connect provider."),
			"client_id":     text("Client ID of the console."),
			"client_secret": text("Client secret of the console. Default: none, for a public client."),
			"redirect_url":  text("URL of the console, followed by /auth/callback."),
			"scopes":        texts("Scopes to request. Default: openid, profile, email."),
			"roles_claim":   with(text("Claim with a user's groups; dots lead into nested objects."), "default", "groups"),
			"name_claim":    text("Claim that names the user in the audit log. Default: email, then sub."),
			"roles":         with(roles("A role for each value of that claim. Users without a role are refused."), "minProperties", 1),
		}, "issuer", "client_id", "redirect_url", "roles"),
		"proxy": strictObject(object{
			"from":        texts("Addresses of proxies, such as 10.0.0.0/8. Headers from elsewhere are ignored."),
			"user_header": with(text("Header with the user's name. Default: none, the proxy is trusted for the client address only."), "examples", []string{"X-Forwarded-User"}),
			"role_header": text("Header with the role, or with groups. Default: none, every user has the role below."),
			"roles":       roles("A role for each value of that header. Default: the values are roles."),
			"role":        role("Role of users for whom that header names none.", "viewer"),
		}, "from"),
		"payloads":    role("Lowest role that may see payloads and the values of headers.", "operator"),
		"redact":      texts("JSON paths that are hidden in payloads from every role, such as $.card.number or $..password."),
		"trace_url":   with(text("URL of a trace, with {trace_id} as placeholder."), "examples", []string{"https://jaeger.example.com/trace/{trace_id}"}),
		"session":     with(duration("How long an idle session stays valid."), "default", "8h0m0s"),
		"session_key": text("Key that encrypts sessions, of at least 32 characters. Processes that share it accept each other's sessions, also after a restart. Default: a random key of the process."),
	})
}

// redactConsole returns the console's settings with secrets replaced by asterisks.
func redactConsole(c Console) map[string]any {
	shown := make(map[string]any)
	put := func(into map[string]any, key string, value any, is bool) {
		if is {
			into[key] = value
		}
	}
	put(shown, "listen", c.Listen, c.Listen != "")
	put(shown, "prefix", c.Prefix, c.Prefix != "")
	put(shown, "cert_file", c.CertFile, c.CertFile != "")
	put(shown, "key_file", c.KeyFile, c.KeyFile != "")
	put(shown, "hosts", c.Hosts, len(c.Hosts) > 0)
	put(shown, "payloads", c.Payloads, c.Payloads != "")
	put(shown, "redact", c.Redact, len(c.Redact) > 0)
	put(shown, "trace_url", c.TraceURL, c.TraceURL != "")
	put(shown, "session", c.Session.String(), c.Session != 0)
	put(shown, "session_key", hiddenText, c.SessionKey != "")
	tokens := make(map[string]any)
	for name, t := range c.Tokens {
		one := map[string]any{"token": hiddenText}
		put(one, "role", t.Role, t.Role != "")
		tokens[name] = one
	}
	put(shown, "tokens", tokens, len(tokens) > 0)
	if o := c.OIDC; o != nil {
		oidc := map[string]any{"issuer": o.Issuer, "client_id": o.ClientID, "redirect_url": RedactURL(o.RedirectURL), "roles": o.Roles}
		put(oidc, "client_secret", hiddenText, o.ClientSecret != "")
		put(oidc, "scopes", o.Scopes, len(o.Scopes) > 0)
		put(oidc, "roles_claim", o.RolesClaim, o.RolesClaim != "")
		put(oidc, "name_claim", o.NameClaim, o.NameClaim != "")
		shown["oidc"] = oidc
	}
	if p := c.Proxy; p != nil {
		proxy := map[string]any{"from": p.From}
		put(proxy, "user_header", p.UserHeader, p.UserHeader != "")
		put(proxy, "roles", p.Roles, len(p.Roles) > 0)
		put(proxy, "role_header", p.RoleHeader, p.RoleHeader != "")
		put(proxy, "role", p.Role, p.Role != "")
		shown["proxy"] = proxy
	}
	return shown
}
