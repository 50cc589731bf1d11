package config

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

const consoled = good + `
console:
  listen: 0.0.0.0:8711
  prefix: /postrider
  hosts: [postrider.example.com]
  tokens:
    ann: {token: 0123456789abcdef01234567, role: admin}
    ci: {token: "fedcba98765432100123456789"}
  oidc:
    issuer: https://login.example.com
    client_id: postrider
    client_secret: planted-oidc-secret
    redirect_url: https://postrider.example.com/postrider/auth/callback
    roles_claim: realm_access.roles
    roles: {sre: admin, support: viewer}
  proxy:
    from: 10.0.0.0/8
    user_header: X-Forwarded-User
  payloads: admin
  redact: ["$.card.number", "$..password"]
  trace_url: https://jaeger.example.com/trace/{trace_id}
  session: 1h
  session_key: planted-session-key-of-32-characters
`

func TestConsole(t *testing.T) {
	f := mustParse(t, consoled)
	c := f.Console
	if c.Listen != "0.0.0.0:8711" || c.Tokens["ann"].Role != "admin" || c.OIDC.Roles["sre"] != "admin" || c.Session != time.Hour ||
		!reflect.DeepEqual(c.Proxy.From, []string{"10.0.0.0/8"}) || len(c.Redact) != 2 {
		t.Errorf("%+v", c)
	}
	shown, err := f.Redacted().YAML()
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"0123456789abcdef", "fedcba9876543210", "planted-oidc-secret", "planted-session-key"} {
		if strings.Contains(string(shown), secret) {
			t.Errorf("%s is shown in %s", secret, shown)
		}
	}
	if err := validateText(t, consoled); err != nil {
		t.Errorf("schema: %v", err)
	}
	if _, others := f.Changes(mustParse(t, strings.Replace(consoled, "session: 1h", "session: 2h", 1))); !reflect.DeepEqual(others, []string{"console"}) {
		t.Errorf("changes %q", others)
	}
}

func TestConsoleMistakes(t *testing.T) {
	for name, test := range map[string]struct{ old, replacement, want string }{
		"open to all": {consoled[strings.Index(consoled, "  tokens:"):strings.Index(consoled, "  payloads:")], "",
			"want console.tokens, console.oidc or console.proxy.user_header, or 127.0.0.1"},
		"short token": {"0123456789abcdef01234567", "short", "it has 5 characters"},
		"role":        {"role: admin", "role: root", `"root" is not a role`},
		"oidc role":   {"sre: admin", "sre: boss", `"boss" is not a role`},
		"no roles":    {"    roles: {sre: admin, support: viewer}\n", "", "no user could sign in"},
		"no issuer":   {"    issuer: https://login.example.com\n", "", "console.oidc.issuer"},
		"proxy range": {"10.0.0.0/8", "10.0.0.1", "not a range of addresses"},
		"no port":     {"0.0.0.0:8711", "0.0.0.0", "is not a host and port"},
		"unknown key": {"trace_url", "trace_uri", "trace_url"},
		"proxy from":  {"    from: 10.0.0.0/8\n", "", "no proxy would be trusted"},
		"session key": {"planted-session-key-of-32-characters", "short", "want at least 32"},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(consoled, test.old) {
				t.Fatalf("%q is not there", test.old)
			}
			_, err := parse(strings.Replace(consoled, test.old, test.replacement, 1))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("want %q, got %v", test.want, err)
			}
		})
	}
	if _, err := parse(good + "console: {listen: \"127.0.0.1:8711\"}\n"); err != nil {
		t.Errorf("on this machine alone: %v", err)
	}
}
