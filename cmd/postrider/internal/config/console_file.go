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
		"prefix":    with(text("Path that it is reached under."), "default", "/"),
		"cert_file": text("PEM file of a certificate. With it, and its key, the console speaks HTTPS and no HTTP; it is read again when it changes. Default: none."),
		"key_file":  text("PEM file of the key of that certificate. Default: none."),
		"hosts":     texts("Names that it is reached by, beside those of this machine. Requests for others are refused."),
		"tokens": with(namedBy("Fixed secrets, by the name of whom each belongs to.", strictObject(object{
			"token": text("At least 24 characters, such as \"${ANN_TOKEN}\"."),
			"role":  role("What it lets its owner do.", "viewer"),
		}, "token")), "minProperties", 0),
		"oidc": strictObject(object{
			"issuer":        text("Address of the OpenID Connect provider."),
			"client_id":     text("Name of the console there."),
			"client_secret": text("Secret of the console there. Default: none, for a public client."),
			"redirect_url":  text("The console's own address, and /auth/callback."),
			"scopes":        texts("What to ask for. Default: openid, profile, email."),
			"roles_claim":   with(text("Claim with a person's groups; dots lead into objects."), "default", "groups"),
			"name_claim":    text("Claim for the record. Default: email, then sub."),
			"roles":         with(roles("A role for each value of that claim. Nobody comes in without one."), "minProperties", 1),
		}, "issuer", "client_id", "redirect_url", "roles"),
		"proxy": strictObject(object{
			"from":        texts("Addresses of proxies, such as 10.0.0.0/8. Headers from elsewhere are ignored."),
			"user_header": with(text("Header with the person's name. Default: none, the proxy is only believed where a request came from."), "examples", []string{"X-Forwarded-User"}),
			"role_header": text("Header with the role, or with groups. Default: none, everybody has the role below."),
			"roles":       roles("A role for each value of that header. Default: the values are roles."),
			"role":        role("Role of people of whom that header says nothing.", "viewer"),
		}, "from"),
		"payloads":    role("Least role that sees payloads and the values of headers.", "operator"),
		"redact":      texts("JSON paths of payloads that nobody sees, such as $.card.number or $..password."),
		"trace_url":   with(text("Link to a trace, with {trace_id} in it."), "examples", []string{"https://jaeger.example.com/trace/{trace_id}"}),
		"session":     with(duration("How long somebody stays signed in without doing anything."), "default", "8h0m0s"),
		"session_key": text("Makes sessions good for all processes that share it, and over restarts; at least 32 characters. Default: one of this process alone."),
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
