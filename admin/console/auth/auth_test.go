package auth

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const (
	annsToken = "ann-000000000000000000000001"
	botsToken = "bot-000000000000000000000002"
)

func newAuth(t *testing.T, cfg Config, prefix string) *Auth {
	t.Helper()
	a, err := New(cfg, prefix, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// whoami answers who has asked.
func whoami() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if who, ok := From(r.Context()); ok {
			_, _ = fmt.Fprintf(w, "%s %s %s", who.Name, who.Role, who.Via)
			return
		}
		_, _ = io.WriteString(w, "nobody")
	})
}

func tokens() Config {
	return Config{Tokens: []Token{{Name: "ann", Secret: annsToken, Role: Admin}, {Name: "bot", Secret: botsToken}}}
}

type request struct {
	method, path, body string
	header             map[string]string
	cookie             *http.Cookie
	from               string
}

func (q request) do(t *testing.T, a *Auth) *http.Response {
	t.Helper()
	method, path := q.method, q.path
	if method == "" {
		method = http.MethodGet
	}
	if path == "" {
		path = "/api/v1/me"
	}
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(q.body))
	for name, value := range q.header {
		r.Header.Set(name, value)
	}
	if q.cookie != nil {
		r.AddCookie(q.cookie)
	}
	if q.from != "" {
		r.RemoteAddr = q.from
	}
	w := httptest.NewRecorder()
	a.Wrap(whoami()).ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, resp *http.Response) string {
	t.Helper()
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestTokens(t *testing.T) {
	a := newAuth(t, tokens(), "/")
	tests := []struct {
		name, header, want string
		status             int
	}{
		{"admin", "Bearer " + annsToken, "ann admin token", 200},
		{"viewer by default", "bearer " + botsToken, "bot viewer token", 200},
		{"none", "", "", 401},
		{"wrong", "Bearer " + annsToken + "x", "", 401},
		{"empty", "Bearer ", "", 401},
		{"another scheme", "Basic " + annsToken, "", 401},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			resp := request{header: map[string]string{"Authorization": tt.header}}.do(t, a)
			got := body(t, resp)
			if resp.StatusCode != tt.status || tt.want != "" && got != tt.want {
				t.Errorf("got %d %s", resp.StatusCode, got)
			}
			if tt.status == 401 && (resp.Header.Get("Content-Type") != "application/problem+json" || resp.Header.Get("WWW-Authenticate") == "") {
				t.Errorf("header: %v", resp.Header)
			}
		})
	}
}

// Pages ask people to sign in, so they load without.
func TestWithoutIdentity(t *testing.T) {
	a := newAuth(t, tokens(), "/postrider")
	tests := []struct {
		method, path string
		status       int
	}{
		{"GET", "/postrider/", 200}, {"GET", "/postrider/assets/app.js", 200}, {"HEAD", "/postrider/dead", 200},
		{"GET", "/postrider/api/v1/me", 401}, {"GET", "/postrider/api", 401}, {"GET", "/postrider/%61pi/v1/me", 401},
		{"GET", "/postrider//api/v1/me", 401}, {"GET", "/postrider/api%2fv1/me", 401},
		{"POST", "/postrider/", 401}, {"DELETE", "/postrider/x", 401}, {"OPTIONS", "/postrider/x", 401},
		{"GET", "/postrider/auth/methods", 200}, {"GET", "/postrider/auth/login", 404}, {"GET", "/postrider/auth/x", 404},
	}
	for _, tt := range tests {
		resp := request{method: tt.method, path: tt.path}.do(t, a)
		if got := body(t, resp); resp.StatusCode != tt.status || strings.Contains(got, "admin") {
			t.Errorf("%s %s: %d %s", tt.method, tt.path, resp.StatusCode, got)
		}
	}
	if got := body(t, request{path: "/postrider/auth/methods"}.do(t, a)); strings.TrimSpace(got) != `{"oidc":false,"token":true}` {
		t.Errorf("methods: %s", got)
	}
}

// After ten wrong tokens an address waits before it may try another wrong one. Who has the right one comes in: behind a proxy all have that
// address, and nobody may lock the others out.
func TestGuessing(t *testing.T) {
	a := newAuth(t, tokens(), "")
	cookie := signIn(t, a, annsToken)
	guess := func(token, from string) int {
		resp := request{header: map[string]string{"Authorization": "Bearer " + token}, from: from}.do(t, a)
		defer resp.Body.Close()
		return resp.StatusCode
	}
	for i := range 10 {
		if got := guess(fmt.Sprint(i), "192.0.2.7:1"); got != 401 {
			t.Fatalf("guess %d: %d", i, got)
		}
	}
	resp := request{method: "POST", path: "/auth/session", body: `{"token":"another wrong one"}`, from: "192.0.2.7:2"}.do(t, a)
	if resp.StatusCode != 429 || resp.Header.Get("Retry-After") == "" || len(resp.Cookies()) > 0 {
		t.Errorf("signing in after ten guesses: %d %s", resp.StatusCode, body(t, resp))
	}
	if got := guess(annsToken, "192.0.2.7:3"); got != 200 {
		t.Errorf("the right token after ten guesses: %d", got)
	}
	if got := guess("eleven", "192.0.2.7:3"); got != 429 {
		t.Errorf("a wrong token after ten guesses: %d", got)
	}
	if got := guess(annsToken, "192.0.2.8:1"); got != 200 {
		t.Errorf("another address: %d", got)
	}
	if resp := (request{cookie: cookie, from: "192.0.2.7:4"}).do(t, a); resp.StatusCode != 200 {
		t.Errorf("who is signed in at that address: %d", resp.StatusCode)
	}
}

// Secrets do not get into logs by way of the configuration.
func TestSecretsAreNotPrinted(t *testing.T) {
	const secret = "CANARY-CANARY-CANARY-CANARY-CANARY"
	cfg := Config{
		Tokens: []Token{{Name: "ann", Secret: secret}}, SessionKey: []byte(secret),
		OIDC: &OIDC{Issuer: "https://id.example.com", ClientID: "c", ClientSecret: secret},
	}
	var out strings.Builder
	logger := slog.New(slog.NewJSONHandler(&out, nil))
	for _, v := range []any{cfg, &cfg, cfg.Tokens, cfg.Tokens[0], cfg.OIDC, *cfg.OIDC, struct{ Access Config }{cfg}} {
		_, _ = fmt.Fprintf(&out, "%v %+v %#v %s\n", v, v, v, v)
		logger.Info("x", "v", v)
		b, err := json.Marshal(v)
		if err != nil {
			t.Error(err)
		}
		out.Write(b)
	}
	if strings.Contains(out.String(), "CANARY") || strings.Contains(out.String(), "67 65 78 65 82 89") {
		t.Error(out.String())
	}
	_, err := New(cfg, "", nil)
	if err == nil || strings.Contains(err.Error(), "CANARY") {
		t.Errorf("error: %v", err)
	}
}
