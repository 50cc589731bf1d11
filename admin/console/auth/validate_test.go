package auth

import (
	"net/netip"
	"strings"
	"testing"
	"time"
)

func TestValidate(t *testing.T) {
	good := func() *OIDC {
		return &OIDC{
			Issuer: "https://id.example.com", ClientID: "c", RedirectURL: "https://console.example.com/auth/callback",
			Roles: map[string]Role{"ops": Operator},
		}
	}
	withOIDC := func(change func(*OIDC)) Config {
		o := good()
		change(o)
		return Config{OIDC: o, Hosts: []string{"console.example.com"}}
	}
	from := []netip.Prefix{netip.MustParsePrefix("10.0.0.1/32")}
	tests := []struct {
		name   string
		cfg    Config
		listen string
		want   []string // of the error; none: no error
	}{
		{"nothing, on loopback", Config{}, "127.0.0.1:8080", nil},
		{"nothing, on IPv6 loopback", Config{}, "[::1]:8080", nil},
		{"nothing, on localhost", Config{}, "localhost:8080", nil},
		{"nothing, on a socket", Config{}, "unix:/run/postrider.sock", nil},
		{"nothing, everywhere", Config{}, ":8080", []string{`":8080"`, "tokens, OIDC or a proxy"}},
		{"nothing, on 0.0.0.0", Config{}, "0.0.0.0:8080", []string{"0.0.0.0:8080"}},
		{"nothing, on an address", Config{}, "192.0.2.1:8080", []string{"192.0.2.1:8080"}},
		{"nothing, on a name", Config{}, "console:8080", []string{"console:8080"}},
		{"nothing, on nonsense", Config{}, "8080", []string{"8080"}},
		{"tokens", tokens(), ":8080", nil},
		{"OIDC", withOIDC(func(*OIDC) {}), ":8080", nil},
		{"OIDC on loopback", Config{OIDC: &OIDC{
			Issuer: "http://127.0.0.1:5556/dex", ClientID: "c", RedirectURL: "http://localhost:8080/auth/callback", Roles: map[string]Role{"a": Admin},
		}}, "127.0.0.1:8080", nil},
		{"proxy", Config{Proxy: &Proxy{From: from, UserHeader: "X-User"}}, ":8080", nil},
		{"proxy from nowhere", Config{Proxy: &Proxy{UserHeader: "X-User"}}, ":8080", []string{"from is empty"}},
		{"proxy from everywhere", Config{Proxy: &Proxy{From: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}, UserHeader: "X-User"}}, ":8080",
			[]string{"everywhere"}},
		{"proxy that says nothing", Config{Proxy: &Proxy{From: from}}, "127.0.0.1:80", []string{"nothing says who"}},
		{"proxy that says nothing, off loopback", Config{Proxy: &Proxy{From: from}}, ":80", []string{"nothing says who comes", "others can reach"}},
		{"proxy with one header for both", Config{Proxy: &Proxy{From: from, UserHeader: "X-A", RoleHeader: "x-a"}}, ":80", []string{"both"}},
		{"issuer by http", withOIDC(func(o *OIDC) { o.Issuer = "http://id.example.com" }), ":8080", []string{"issuer", "want https"}},
		{"redirect by http", withOIDC(func(o *OIDC) { o.RedirectURL = "http://console.example.com/auth/callback" }), ":80", []string{"redirect", "want https"}},
		{"redirect to a host that is refused", withOIDC(func(o *OIDC) { o.RedirectURL = "https://other.example.com/auth/callback" }), ":80",
			[]string{"other.example.com", "console.example.com"}},
		{"redirect to another page", withOIDC(func(o *OIDC) { o.RedirectURL = "https://console.example.com/" }), ":80", []string{"/auth/callback"}},
		{"no roles", withOIDC(func(o *OIDC) { o.Roles = nil }), ":8080", []string{"no user could sign in"}},
		{"all at once", Config{
			Hosts: []string{"https://x", "*.example.com"}, Payloads: "king", Session: 25 * time.Hour, Rate: -1, SessionKey: []byte("short"),
			Tokens: []Token{{Name: "a", Secret: "short"}, {Secret: annsToken}, {Name: "b", Secret: annsToken, Role: "king"}},
			OIDC:   &OIDC{Roles: map[string]Role{"ops": "king"}},
			Proxy:  &Proxy{RoleHeader: "X", Role: "king"},
		}, ":8080", []string{
			`"https://x"`, `"*.example.com"`, "payloads", "session: 25h", "rate", "session key", "5 characters: want at least 24", "no name",
			"has the secret of", `token 3 (b): there is no role "king"`, "issuer", "client ID", "redirect URL", `role of "ops"`, "from is empty", "needs a user header",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.cfg.Validate(tt.listen)
			if (err != nil) != (tt.want != nil) {
				t.Fatalf("got %v", err)
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%v\ndoes not say %q", err, part)
				}
			}
			if err != nil && strings.Contains(err.Error(), annsToken) {
				t.Errorf("tells a secret: %v", err)
			}
		})
	}
}

func TestMay(t *testing.T) {
	roles := []Role{"", "king", Viewer, Operator, Admin}
	for i, r := range roles {
		for j, what := range roles {
			if got := r.May(what); got != (j >= 2 && i >= j) {
				t.Errorf("%q may %q: %t", r, what, got)
			}
		}
	}
	if (Config{}).SeesPayloads(Viewer) || !(Config{}).SeesPayloads(Operator) || !(Config{Payloads: Viewer}).SeesPayloads(Viewer) ||
		(Config{Payloads: Admin}).SeesPayloads(Operator) {
		t.Error("payloads")
	}
}
