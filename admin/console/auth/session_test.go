package auth

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// signIn returns the cookie for a token.
func signIn(t *testing.T, a *Auth, token string) *http.Cookie {
	t.Helper()
	resp := request{method: "POST", path: a.prefix + "/auth/session", body: `{"token":"` + token + `"}`}.do(t, a)
	if resp.StatusCode != http.StatusNoContent || len(resp.Cookies()) != 1 {
		t.Fatalf("signing in: %d %s", resp.StatusCode, body(t, resp))
	}
	return resp.Cookies()[0]
}

func TestSession(t *testing.T) {
	a := newAuth(t, tokens(), "/postrider")
	cookie := signIn(t, a, annsToken)
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/postrider" || cookie.MaxAge != 8*3600 || cookie.Secure {
		t.Errorf("cookie: %v", cookie)
	}
	me := request{path: "/postrider/api/v1/me", cookie: cookie}
	if got := body(t, me.do(t, a)); got != "ann admin token" {
		t.Fatalf("got %s", got)
	}

	start := time.Now()
	at := func(d time.Duration) { a.now = func() time.Time { return start.Add(d) } }
	at(7 * time.Hour)
	resp := me.do(t, a)
	if len(resp.Cookies()) != 1 {
		t.Fatalf("after 7 h it is not prolonged: %d", resp.StatusCode)
	}
	longer := request{path: me.path, cookie: resp.Cookies()[0]}
	at(8*time.Hour + time.Minute)
	if resp := me.do(t, a); resp.StatusCode != 401 {
		t.Errorf("after 8 h without doing anything: %d", resp.StatusCode)
	}
	if resp := longer.do(t, a); resp.StatusCode != 200 {
		t.Errorf("prolonged: %d", resp.StatusCode)
	}
	for h := 8; h < 24; h++ {
		at(time.Duration(h)*time.Hour + 2*time.Minute)
		resp := longer.do(t, a)
		if resp.StatusCode != 200 {
			t.Fatalf("after %d h: %d", h, resp.StatusCode)
		}
		if len(resp.Cookies()) > 0 {
			longer.cookie = resp.Cookies()[0]
		}
	}
	at(24*time.Hour + time.Minute)
	if resp := longer.do(t, a); resp.StatusCode != 401 {
		t.Errorf("after 24 h: %d", resp.StatusCode)
	}
}

// Signing out also ends the session of a copied cookie, and of one that prolonged it.
func TestLogout(t *testing.T) {
	a := newAuth(t, tokens(), "")
	cookie := signIn(t, a, annsToken)
	now := time.Now()
	a.now = func() time.Time { return now.Add(time.Hour) }
	prolonged := request{cookie: cookie}.do(t, a).Cookies()[0]
	resp := request{method: "POST", path: "/auth/logout", cookie: cookie}.do(t, a)
	if resp.StatusCode != 204 || len(resp.Cookies()) != 1 || resp.Cookies()[0].MaxAge >= 0 {
		t.Errorf("got %d %v", resp.StatusCode, resp.Cookies())
	}
	for _, c := range []*http.Cookie{cookie, prolonged} {
		if resp := (request{cookie: c}).do(t, a); resp.StatusCode != 401 {
			t.Errorf("signed out, and still: %d", resp.StatusCode)
		}
		if got := body(t, request{path: "/", cookie: c}.do(t, a)); got != "nobody" {
			t.Errorf("signed out, and the page is not loaded: %s", got)
		}
	}
	if resp := (request{cookie: signIn(t, a, annsToken)}).do(t, a); resp.StatusCode != 200 {
		t.Errorf("signed in again: %d", resp.StatusCode)
	}
}

// A stream that is open when somebody signs out ends.
func TestStreamsEnd(t *testing.T) {
	a := newAuth(t, tokens(), "")
	stream := func(cookie *http.Cookie) (ended chan error) {
		begun := make(chan struct{})
		ended = make(chan error, 1)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/events", nil)
		r.AddCookie(cookie)
		go a.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			close(begun)
			<-r.Context().Done()
			ended <- r.Context().Err()
		})).ServeHTTP(httptest.NewRecorder(), r)
		<-begun
		return ended
	}
	wait := func(ended chan error, want error) {
		t.Helper()
		select {
		case err := <-ended:
			if !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("the stream goes on")
		}
	}
	ann, bot := signIn(t, a, annsToken), signIn(t, a, botsToken)
	anns, bots := stream(ann), stream(bot)
	request{method: "POST", path: "/auth/logout", cookie: ann}.do(t, a).Body.Close()
	wait(anns, context.Canceled)
	select {
	case err := <-bots:
		t.Errorf("the stream of another ended: %v", err)
	default:
	}
}

// No request has longer than the session that it is part of.
func TestDeadline(t *testing.T) {
	a := newAuth(t, tokens(), "")
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/events", nil)
	r.AddCookie(signIn(t, a, annsToken))
	start := time.Now()
	a.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if end, ok := r.Context().Deadline(); !ok || end.Sub(start) > 8*time.Hour+time.Second {
			t.Errorf("the request has until %v", end)
		}
	})).ServeHTTP(httptest.NewRecorder(), r)
	if len(a.requests.of) > 0 {
		t.Errorf("%d sessions are kept after their requests", len(a.requests.of))
	}
}

func TestForgedSessions(t *testing.T) {
	a := newAuth(t, tokens(), "")
	cookie := signIn(t, a, botsToken)
	b := []byte(cookie.Value)
	b[len(b)/2] ^= 1
	flow, err := a.flows.close(session{ID: "1", Name: "ann", Role: Admin, Via: "token", Grant: a.tokens[0].grant, Born: time.Now().Unix(), Seen: time.Now().Unix()})
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"changed": string(b), "cut": cookie.Value[:20], "empty": "", "sealed for another purpose": flow, "not base64": "!"} {
		if resp := (request{cookie: &http.Cookie{Name: cookie.Name, Value: value}}).do(t, a); resp.StatusCode != 401 {
			t.Errorf("%s: %d", name, resp.StatusCode)
		}
	}
	if resp := (request{cookie: cookie}).do(t, newAuth(t, tokens(), "")); resp.StatusCode != 401 {
		t.Errorf("of another process: %d", resp.StatusCode)
	}
}

// Processes that share a key share sessions, and none outlives what it was given for.
func TestSharedKey(t *testing.T) {
	cfg := tokens()
	cfg.SessionKey = []byte(strings.Repeat("k", 32))
	cookie := signIn(t, newAuth(t, cfg, ""), annsToken)
	if got := body(t, request{cookie: cookie}.do(t, newAuth(t, cfg, ""))); got != "ann admin token" {
		t.Errorf("another process: %s", got)
	}
	cfg.Tokens = []Token{{Name: "ann", Secret: annsToken, Role: Viewer}}
	if got := body(t, request{cookie: cookie}.do(t, newAuth(t, cfg, ""))); got != "ann viewer token" {
		t.Errorf("with less of a role now: %s", got)
	}
	cfg.Tokens = []Token{{Name: "ann", Secret: botsToken, Role: Admin}}
	if resp := (request{cookie: cookie}).do(t, newAuth(t, cfg, "")); resp.StatusCode != 401 {
		t.Errorf("after the token has been changed: %d", resp.StatusCode)
	}
}

// Behind TLS the cookie is one that only this host can have set, by TLS.
func TestSecureCookie(t *testing.T) {
	cfg := tokens()
	cfg.Proxy = &Proxy{From: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	tests := []struct {
		prefix, from, proto, name string
		secure                    bool
	}{
		{"", "10.0.0.1:1", "https", "__Host-postrider", true},
		{"/x", "10.0.0.1:1", "https", "__Secure-postrider", true},
		{"", "10.0.0.1:1", "http", "postrider", false},
		{"", "192.0.2.1:1", "https", "postrider", false},
	}
	for _, tt := range tests {
		a := newAuth(t, cfg, tt.prefix)
		resp := request{
			method: "POST", path: tt.prefix + "/auth/session", body: `{"token":"` + annsToken + `"}`, from: tt.from,
			header: map[string]string{"X-Forwarded-Proto": tt.proto},
		}.do(t, a)
		if c := resp.Cookies(); len(c) != 1 || c[0].Name != tt.name || c[0].Secure != tt.secure {
			t.Errorf("%+v: %v", tt, c)
		}
	}
}
