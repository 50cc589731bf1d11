package auth

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"
)

// What comes back must belong to what this browser has begun, and does so once.
func TestOIDCFlow(t *testing.T) {
	with := func(callback, name, value string) string {
		u, err := url.Parse(callback)
		if err != nil {
			t.Fatal(err)
		}
		q := u.Query()
		q.Set(name, value)
		u.RawQuery = q.Encode()
		return u.String()
	}
	refused := func(t *testing.T, s *site, callback string, want int) {
		t.Helper()
		if status, body, _ := s.get(callback); status != want {
			t.Errorf("got %d, want %d: %s", status, want, body)
		}
		if status, _, _ := s.get("/postrider/api/v1/me"); status != http.StatusUnauthorized {
			t.Errorf("signed in nevertheless: %d", status)
		}
	}
	t.Run("wrong state", func(t *testing.T) {
		s := newSite(t, nil)
		refused(t, s, with(s.halt(), "state", "another"), 400)
	})
	t.Run("no state", func(t *testing.T) {
		s := newSite(t, nil)
		refused(t, s, with(s.halt(), "state", ""), 400)
	})
	t.Run("another provider", func(t *testing.T) {
		s := newSite(t, nil)
		refused(t, s, with(s.halt(), "iss", "https://evil.example"), 400)
	})
	t.Run("refused there", func(t *testing.T) {
		s := newSite(t, nil)
		refused(t, s, with(s.halt(), "error", "access_denied"), 403)
	})
	t.Run("another browser", func(t *testing.T) {
		s := newSite(t, nil)
		callback := s.halt()
		jar, err := cookiejar.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		s.browser.Jar = jar
		refused(t, s, callback, 400)
	})
	t.Run("a code of somebody else", func(t *testing.T) {
		s := newSite(t, nil)
		code, err := url.Parse(s.halt())
		if err != nil {
			t.Fatal(err)
		}
		refused(t, s, with(s.halt(), "code", code.Query().Get("code")), 502)
	})
	t.Run("too late", func(t *testing.T) {
		s := newSite(t, nil)
		callback := s.halt()
		s.auth.now = func() time.Time { return time.Now().Add(11 * time.Minute) }
		refused(t, s, callback, 400)
	})
	t.Run("twice", func(t *testing.T) {
		s := newSite(t, nil)
		callback := s.halt()
		at, err := url.Parse(callback)
		if err != nil {
			t.Fatal(err)
		}
		kept := s.browser.Jar.Cookies(at)
		if status, _, _ := s.get(callback); status != http.StatusOK {
			t.Fatalf("once: %d", status)
		}
		jar, err := cookiejar.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		jar.SetCookies(at, kept)
		s.browser.Jar = jar
		refused(t, s, callback, 400)
		// A process that has not seen it leaves it to the provider, which has redeemed the code.
		s.auth.begun = used{}
		jar.SetCookies(at, kept)
		refused(t, s, callback, 502)
	})
}

// The console starts without its provider, and finds it later.
func TestOIDCProviderDown(t *testing.T) {
	p := newIDP(t)
	p.about, p.down = map[string]any{"email": "ann@example.com", "groups": "staff"}, true
	s := siteFor(t, p, nil)
	if status, body, _ := s.get("/postrider/auth/login"); status != http.StatusServiceUnavailable || !strings.Contains(body, "does not answer") {
		t.Fatalf("got %d: %s", status, body)
	}
	p.mu.Lock()
	p.down = false
	p.mu.Unlock()
	s.auth.provider.mu.Lock()
	s.auth.provider.failed = time.Time{} // the pause is over
	s.auth.provider.mu.Unlock()
	s.get("/postrider/auth/login")
	if _, body, _ := s.get("/postrider/api/v1/me"); body != "ann@example.com viewer oidc" {
		t.Errorf("got %s", body)
	}
}

func TestLocalPath(t *testing.T) {
	for _, prefix := range []string{"", "/postrider"} {
		a := &Auth{prefix: prefix}
		home := prefix + "/"
		for _, good := range []string{"/", "/?db=a", "/#x", "/dead", "/dead/?feed=a&b=%2F%2Fc#//x", "/messages/a%20b"} {
			if got := a.localPath(prefix + good); got != prefix+good {
				t.Errorf("%s: became %s", prefix+good, got)
			}
		}
		for _, bad := range []string{
			"", "dead", "//evil.example", "///evil.example", `/\evil.example`, `\\evil.example`, "https://evil.example", "//evil.example/postrider/",
			"javascript:alert(1)", "/\t/evil.example", "/\n/evil.example", "\t//evil.example", "/%2F/evil.example", "/../../evil", "/./x",
			"/x//evil.example", "/auth/logout", "https:/evil.example", "/\x00/evil.example", "/x\r\nSet-Cookie: a=b", "/" + strings.Repeat("a", 3000),
		} {
			for _, to := range []string{bad, prefix + bad, prefix + "/" + bad} {
				got := a.localPath(to)
				u, err := url.Parse(got)
				if err != nil || u.Host != "" || u.Scheme != "" || strings.HasPrefix(got, "//") || strings.ContainsAny(got, "\\\t\r\n\x00") ||
					!strings.HasPrefix(got, home) || strings.Contains(u.Path, "//") || strings.Contains(u.Path, "/../") {
					t.Errorf("%q: leads to %q", to, got)
				}
			}
		}
	}
}
