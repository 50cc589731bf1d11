package auth

import (
	"html"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider/internal/need"
)

// keycloakSite is a console whose provider is Keycloak, as one of the clients that dev/lib/keycloak.sh describes.
func keycloakSite(t *testing.T, client string, change func(*OIDC)) *site {
	t.Helper()
	issuer := need.Env(t, "POSTRIDER_TEST_KEYCLOAK", "keycloak")
	s := siteWith(t, func(back string) OIDC {
		cfg := OIDC{
			Issuer: issuer, ClientID: client, ClientSecret: keycloakSecret(client), RedirectURL: back,
			Roles: map[string]Role{"postrider-viewer": Viewer, "postrider-operator": Operator, "postrider-admin": Admin},
		}
		if change != nil {
			change(&cfg)
		}
		return cfg
	})
	s.forget(nil, nil)
	// From now on nothing but what the test does uses the provider, which it may change.
	if _, err := s.auth.provider.discover(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func keycloakSecret(client string) string { return "secret-of-" + client + "-for-tests-only" }

// loopbackJar sends cookies that are for TLS only to Keycloak on this machine too, as browsers do.
type loopbackJar struct{ http.CookieJar }

func (j loopbackJar) SetCookies(u *url.URL, cookies []*http.Cookie) {
	for _, c := range cookies {
		c.Secure = false
	}
	j.CookieJar.SetCookies(u, cookies)
}

// forget makes the browser a new one, which has these cookies only.
func (s *site) forget(at *url.URL, cookies []*http.Cookie) {
	s.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.browser.Jar = loopbackJar{jar}
	if at != nil {
		jar.SetCookies(at, cookies)
	}
}

var loginForm = regexp.MustCompile(`<form[^>]* action="([^"]+)"`)

// enter types a name and a password into the page of Keycloak.
func (s *site) enter(page, user string) (status int, body, location string) {
	s.t.Helper()
	form := loginForm.FindStringSubmatch(page)
	if form == nil {
		s.t.Fatalf("Keycloak asks for no password: %s", page)
	}
	fields := url.Values{"username": {user}, "password": {"secret"}}
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, html.UnescapeString(form[1]), strings.NewReader(fields.Encode()))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return s.do(req)
}

// signIn goes all the way. It returns the answer of the console.
func (s *site) signIn(user string) (status int, body string) {
	s.t.Helper()
	_, page, _ := s.get("/postrider/auth/login")
	status, body, at := s.enter(page, user)
	if !strings.HasPrefix(at, s.url) {
		s.t.Fatalf("Keycloak has not sent %s back, but to %s: %d %s", user, at, status, body)
	}
	return status, body
}

// refuses fails the test if somebody is signed in, or was refused for another reason. said is the log.
func (s *site) refuses(status, want int, said *strings.Builder, why string) {
	s.t.Helper()
	if status != want || !strings.Contains(said.String(), why) {
		s.t.Errorf("got %d, want %d and %q in the log: %s", status, want, why, said)
	}
	if status, body, _ := s.get("/postrider/api/v1/me"); status != http.StatusUnauthorized {
		s.t.Errorf("signed in nevertheless: %d %s", status, body)
	}
}

// listen returns what the console will log. The browser waits for each answer, so nobody writes while the test reads.
func (s *site) listen() *strings.Builder {
	said := new(strings.Builder)
	s.auth.log = slog.New(slog.NewTextHandler(said, nil))
	return said
}

// subject is how Keycloak calls people among programs.
var subject = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12} viewer oidc$`)

func TestKeycloak(t *testing.T) {
	claim := func(name string) func(*OIDC) {
		return func(c *OIDC) {
			c.RolesClaim, c.Roles = name, map[string]Role{"viewer": Viewer, "operator": Operator, "admin": Admin}
		}
	}
	for _, tt := range []struct {
		name, client string
		change       func(*OIDC)
	}{
		{name: "groups", client: "console"},
		{name: "realm roles", client: "roles.example.com", change: claim("realm_access.roles")},
		{name: "client roles, told when asked", client: "roles.example.com", change: claim("resource_access.roles.example.com.roles")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, role := range []Role{Viewer, Operator, Admin} {
				s := keycloakSite(t, tt.client, tt.change)
				if status, body := s.signIn(string(role)); status != http.StatusOK {
					t.Fatalf("%s: %d %s", role, status, body)
				}
				want := string(role) + "@example.com " + string(role) + " oidc"
				if _, body, _ := s.get("/postrider/api/v1/me"); body != want {
					t.Errorf("signed in as %q, want %q", body, want)
				}
			}
		})
	}
	t.Run("an address that is not verified", func(t *testing.T) {
		s := keycloakSite(t, "console", nil)
		s.signIn("unverified")
		if _, body, _ := s.get("/postrider/api/v1/me"); !subject.MatchString(body) {
			t.Errorf("signed in as %q, want the subject", body)
		}
		s = keycloakSite(t, "console", func(c *OIDC) { c.NameClaim = "preferred_username" })
		s.signIn("unverified")
		if _, body, _ := s.get("/postrider/api/v1/me"); body != "unverified viewer oidc" {
			t.Errorf("signed in as %q, want the name of the account", body)
		}
	})
	t.Run("no group", func(t *testing.T) {
		s := keycloakSite(t, "console", nil)
		said := s.listen()
		status, _ := s.signIn("nobody")
		s.refuses(status, http.StatusForbidden, said, "the user has no role")
	})
}

// impostor sends the requests for tokens as another client does.
type impostor struct{ client string }

func (i impostor) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/token") {
		r = r.Clone(r.Context())
		r.SetBasicAuth(i.client, keycloakSecret(i.client))
	}
	return http.DefaultTransport.RoundTrip(r)
}

// What Keycloak has signed for somebody else, or some time ago, lets nobody in.
func TestKeycloakRefuses(t *testing.T) {
	// Everything about these sign-ins is as the console has asked for, the nonce too, but the client.
	for client, why := range map[string]string{"other": "expected audience", "shared": errParty.Error()} {
		t.Run("a token of the client "+client, func(t *testing.T) {
			s := keycloakSite(t, "console", nil)
			said := s.listen()
			s.auth.provider.client.Transport = impostor{client}
			s.stopAt("/protocol/openid-connect/auth")
			_, _, there := s.get("/postrider/auth/login")
			_, page, _ := s.get(strings.Replace(there, "client_id=console", "client_id="+client, 1))
			status, _, _ := s.enter(page, "admin")
			s.refuses(status, http.StatusBadGateway, said, why)
		})
	}
	t.Run("a code of another client", func(t *testing.T) {
		s := keycloakSite(t, "console", nil)
		said := s.listen()
		s.stopAt("/protocol/openid-connect/auth")
		_, _, there := s.get("/postrider/auth/login")
		_, page, _ := s.get(strings.Replace(there, "client_id=console", "client_id=other", 1))
		status, _, _ := s.enter(page, "admin")
		s.refuses(status, http.StatusBadGateway, said, "the provider refuses the code: invalid_grant")
	})
	t.Run("the client's secret is wrong", func(t *testing.T) {
		s := keycloakSite(t, "console", func(c *OIDC) { c.ClientSecret = "another" })
		said := s.listen()
		status, _ := s.signIn("admin")
		s.refuses(status, http.StatusBadGateway, said, "the provider refuses the code: unauthorized_client")
		if strings.Contains(said.String(), "another") {
			t.Errorf("the secret is in the log: %s", said)
		}
	})
	t.Run("an expired token", func(t *testing.T) {
		later := func() time.Time { return time.Now().Add(clockSkew + 5*time.Second) }
		s := keycloakSite(t, "brief", nil)
		said := s.listen()
		s.auth.provider.now = later
		status, _ := s.signIn("admin")
		s.refuses(status, http.StatusBadGateway, said, "token is expired")
		// It is the token's end that counts: at the same time, one that lasts longer is good.
		s = keycloakSite(t, "console", nil)
		s.auth.provider.now = later
		if status, body := s.signIn("admin"); status != http.StatusOK {
			t.Errorf("a token that has not expired: %d %s", status, body)
		}
	})
	t.Run("a replayed code", func(t *testing.T) {
		s := keycloakSite(t, "console", nil)
		_, page, _ := s.get("/postrider/auth/login")
		s.stopAt("/postrider/auth/callback")
		_, _, callback := s.enter(page, "admin")
		at, err := url.Parse(callback)
		if err != nil || !at.Query().Has("code") {
			t.Fatalf("sent to %q: %v", callback, err)
		}
		kept := s.browser.Jar.Cookies(at)
		if status, body, _ := s.get(callback); status != http.StatusOK {
			t.Fatalf("once: %d %s", status, body)
		}
		said := s.listen()
		s.forget(at, kept)
		status, _, _ := s.get(callback)
		s.refuses(status, http.StatusBadRequest, said, "the flow has come back before")
		// A process that has not seen it leaves it to Keycloak, which has redeemed the code.
		s.auth.begun = used{}
		s.forget(at, kept)
		status, _, _ = s.get(callback)
		s.refuses(status, http.StatusBadGateway, said, "the provider refuses the code: invalid_grant")
	})
}
