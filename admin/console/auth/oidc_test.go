package auth

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// site is a console with an OIDC provider, and a browser.
type site struct {
	t       *testing.T
	idp     *idp
	auth    *Auth
	url     string
	browser *http.Client
}

func newSite(t *testing.T, change func(*OIDC)) *site {
	t.Helper()
	p := newIDP(t)
	p.about = map[string]any{"email": "ann@example.com", "groups": []string{"staff", "postrider-ops"}}
	return siteFor(t, p, change)
}

func siteFor(t *testing.T, p *idp, change func(*OIDC)) *site {
	t.Helper()
	s := siteWith(t, func(back string) OIDC {
		p.back = back
		cfg := OIDC{
			Issuer: p.URL, ClientID: p.client, ClientSecret: p.secret, RedirectURL: back,
			Roles: map[string]Role{"staff": Viewer, "postrider-ops": Operator, "root": Admin},
		}
		if change != nil {
			change(&cfg)
		}
		return cfg
	})
	s.idp = p
	return s
}

// siteWith returns a console without a provider of its own. configure is told where people come back to.
func siteWith(t *testing.T, configure func(back string) OIDC) *site {
	t.Helper()
	var h http.Handler
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(w, r) }))
	t.Cleanup(server.Close)
	cfg := configure(server.URL + "/postrider/auth/callback")
	a := newAuth(t, Config{OIDC: &cfg}, "/postrider")
	h = a.Wrap(whoami())
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &site{t: t, auth: a, url: server.URL, browser: &http.Client{Jar: jar}}
}

func (s *site) get(path string) (status int, body, location string) {
	s.t.Helper()
	if !strings.HasPrefix(path, "http") {
		path = s.url + path
	}
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.do(req)
}

func (s *site) do(req *http.Request) (status int, body, location string) {
	s.t.Helper()
	resp, err := s.browser.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		return resp.StatusCode, string(b), resp.Header.Get("Location")
	}
	return resp.StatusCode, string(b), resp.Request.URL.String()
}

// stopAt makes the browser stop before it is redirected to a path that ends like this, and nowhere else.
func (s *site) stopAt(path string) {
	s.browser.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		if strings.HasSuffix(r.URL.Path, path) {
			return http.ErrUseLastResponse
		}
		return nil
	}
}

// halt makes the browser stop before it goes back to the console, and returns where it would go.
func (s *site) halt() (callback string) {
	s.t.Helper()
	s.stopAt("/postrider/auth/callback")
	status, body, callback := s.get("/postrider/auth/login")
	if status != http.StatusFound {
		s.t.Fatalf("%d %s", status, body)
	}
	return callback
}

func TestOIDC(t *testing.T) {
	s := newSite(t, nil)
	if status, _, _ := s.get("/postrider/api/v1/me"); status != http.StatusUnauthorized {
		t.Fatalf("before signing in: %d", status)
	}
	status, body, at := s.get("/postrider/auth/login?to=/postrider/dead%3Ffeed=a%23x")
	if status != http.StatusOK || !strings.HasPrefix(at, s.url+"/postrider/dead?feed=a") {
		t.Fatalf("signing in: %d at %s: %s", status, at, body)
	}
	if _, body, _ := s.get("/postrider/api/v1/me"); body != "ann@example.com operator oidc" {
		t.Errorf("signed in as %q", body)
	}
}

// Whatever is wrong with what comes back, nobody is signed in.
func TestOIDCRefuses(t *testing.T) {
	hour := time.Hour
	at := func(d time.Duration) int64 { return time.Now().Add(d).Unix() }
	tests := []struct {
		name   string
		about  map[string]any
		change func(*testing.T, *idp)
		status int
		page   string
	}{
		{name: "wrong nonce", about: map[string]any{"nonce": "another"}, status: 502},
		{name: "no nonce", about: map[string]any{"nonce": nil}, status: 502},
		{name: "expired", about: map[string]any{"exp": at(-hour)}, status: 502},
		{name: "not yet valid", about: map[string]any{"nbf": at(hour)}, status: 502},
		{name: "another audience", about: map[string]any{"aud": "mail"}, status: 502},
		{name: "several audiences, of another party", about: map[string]any{"aud": []string{"mail", "console"}, "azp": "mail"}, status: 502},
		{name: "several audiences, of nobody", about: map[string]any{"aud": []string{"mail", "console"}}, status: 502},
		{name: "another issuer", about: map[string]any{"iss": "https://evil.example"}, status: 502},
		{name: "no role", about: map[string]any{"groups": []string{"guests"}}, status: 403, page: "You have no access here"},
		{name: "no groups", about: map[string]any{"groups": nil}, status: 403, page: "signed in as ann@example.com"},
		{name: "a role with a script in the name", about: map[string]any{"groups": nil, "email": "<script>"}, status: 403, page: "&lt;script&gt;"},
		{name: "groups that are no list", about: map[string]any{"groups": map[string]any{"root": true}}, status: 403},
		{name: "not signed", status: 502, change: func(_ *testing.T, p *idp) {
			p.sign = func(claims []byte) string {
				return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + base64.RawURLEncoding.EncodeToString(claims) + "."
			}
		}},
		{name: "signed with the public key as a secret", status: 502, change: func(_ *testing.T, p *idp) {
			p.sign = func(claims []byte) string {
				return p.signed(jose.SigningKey{Algorithm: jose.HS256, Key: x509.MarshalPKCS1PublicKey(&p.key.PublicKey)}, claims)
			}
		}},
		{name: "signed with another key", status: 502, change: func(t *testing.T, p *idp) {
			t.Helper()
			key, err := rsa.GenerateKey(rand.Reader, 2048)
			if err != nil {
				t.Fatal(err)
			}
			p.sign = func(claims []byte) string {
				return p.signed(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: key, KeyID: "1"}}, claims)
			}
		}},
		{name: "no token", status: 502, change: func(_ *testing.T, p *idp) { p.sign = func([]byte) string { return "" } }},
		{name: "the client's secret is wrong", status: 502, change: func(_ *testing.T, p *idp) { p.secret = "another" }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t, nil)
			for name, value := range tt.about {
				s.idp.about[name] = value
			}
			if tt.change != nil {
				tt.change(t, s.idp)
			}
			status, body, _ := s.get("/postrider/auth/login")
			if status != tt.status || !strings.Contains(body, tt.page) {
				t.Errorf("got %d: %s", status, body)
			}
			if status, body, _ := s.get("/postrider/api/v1/me"); status != http.StatusUnauthorized {
				t.Errorf("signed in nevertheless: %d %s", status, body)
			}
		})
	}
}

func TestOIDCAccepts(t *testing.T) {
	tests := []struct {
		name   string
		about  map[string]any
		info   map[string]any
		change func(*OIDC)
		want   string
	}{
		{name: "the highest role", about: map[string]any{"groups": []string{"root", "staff"}}, want: "ann@example.com admin oidc"},
		{name: "a single value", about: map[string]any{"groups": "staff"}, want: "ann@example.com viewer oidc"},
		{name: "a claim inside of another", about: map[string]any{"realm_access": map[string]any{"roles": []string{"root"}}},
			change: func(c *OIDC) { c.RolesClaim = "realm_access.roles" }, want: "ann@example.com admin oidc"},
		{name: "a claim inside of one with dots",
			about:  map[string]any{"resource_access": map[string]any{"console.example.com": map[string]any{"roles": []string{"root"}}}},
			change: func(c *OIDC) { c.RolesClaim = "resource_access.console.example.com.roles" }, want: "ann@example.com admin oidc"},
		{name: "a way that two claims begin", about: map[string]any{"a": map[string]any{"x": "root"}, "a.b": map[string]any{"c": "staff"}},
			change: func(c *OIDC) { c.RolesClaim = "a.b.c" }, want: "ann@example.com viewer oidc"},
		{name: "a way to nowhere", about: map[string]any{"a": map[string]any{"b": "root"}}, change: func(c *OIDC) { c.RolesClaim = "a.b.c" }},
		{name: "a claim with dots", about: map[string]any{"https://example.com/roles": "root"},
			change: func(c *OIDC) { c.RolesClaim = "https://example.com/roles" }, want: "ann@example.com admin oidc"},
		{name: "told only when asked", about: map[string]any{"groups": nil},
			info: map[string]any{"sub": "248289", "groups": []string{"root"}, "email": "eve@example.com"}, want: "ann@example.com admin oidc"},
		{name: "told of another", about: map[string]any{"groups": nil}, info: map[string]any{"sub": "1", "groups": []string{"root"}}},
		{name: "an address that was typed in", about: map[string]any{"email_verified": false}, want: "248289 operator oidc"},
		{name: "no address", about: map[string]any{"email": nil}, want: "248289 operator oidc"},
		{name: "another name", about: map[string]any{"preferred_username": "ann\u202e"},
			change: func(c *OIDC) { c.NameClaim = "preferred_username" }, want: "ann operator oidc"},
		{name: "roles by address", about: map[string]any{"email_verified": true},
			change: func(c *OIDC) { c.RolesClaim, c.Roles = "email", map[string]Role{"ann@example.com": Admin} }, want: "ann@example.com admin oidc"},
		{name: "roles by an address that nobody has verified",
			change: func(c *OIDC) { c.RolesClaim, c.Roles = "email", map[string]Role{"ann@example.com": Admin} }},
		{name: "a clock that is behind", about: map[string]any{"exp": time.Now().Add(-30 * time.Second).Unix()}, want: "ann@example.com operator oidc"},
		{name: "a clock that is ahead", about: map[string]any{"nbf": time.Now().Add(2 * time.Minute).Unix()}, want: "ann@example.com operator oidc"},
		{name: "several audiences, issued to the console", about: map[string]any{"aud": []string{"mail", "console"}, "azp": "console"},
			want: "ann@example.com operator oidc"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t, tt.change)
			for name, value := range tt.about {
				s.idp.about[name] = value
			}
			s.idp.info = tt.info
			s.get("/postrider/auth/login")
			status, body, _ := s.get("/postrider/api/v1/me")
			if tt.want == "" && status != http.StatusUnauthorized || tt.want != "" && body != tt.want {
				t.Errorf("got %d %q, want %q", status, body, tt.want)
			}
		})
	}
}
