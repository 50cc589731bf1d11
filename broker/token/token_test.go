package token_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/postrider/postrider/broker/token"
)

func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestFile checks that a replaced token is used at once.
func TestFile(t *testing.T) {
	t.Parallel()
	file := write(t, "one\n")
	source, err := token.NewSource(token.Config{File: file})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"one", "two"} {
		if err := os.WriteFile(file, []byte(want+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := source.Token(t.Context()); err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := source.Token(t.Context()); err == nil {
		t.Error("an empty file is no error")
	}
}

// TestProvider checks that a token is used while it is valid, and not after it was refused.
func TestProvider(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	life := 3600
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, secret, _ := r.BasicAuth()
		if id != "shop%2F1" || secret != "s%3Acret" || r.FormValue("grant_type") != "client_credentials" || r.FormValue("scope") != "orders" {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"error": "invalid_client", "error_description": "s:cret is wrong"}`)
			return
		}
		fmt.Fprintf(w, `{"access_token": "t%d", "token_type": "Bearer", "expires_in": %d}`, asked.Add(1), life)
	}))
	defer provider.Close()
	cfg := token.Config{URL: provider.URL, ClientID: "shop/1", SecretFile: write(t, "s:cret\n"), Scope: "orders"}
	source, err := token.NewSource(cfg)
	if err != nil {
		t.Fatal(err)
	}
	expect := func(want string) {
		t.Helper()
		if got, err := source.Token(t.Context()); err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	expect("t1")
	expect("t1")
	source.Forget()
	life = 0
	expect("t2")
	expect("t3")

	cfg.SecretFile = write(t, "wrong-secret")
	if source, err = token.NewSource(cfg); err != nil {
		t.Fatal(err)
	}
	_, err = source.Token(t.Context())
	if err == nil || !strings.Contains(err.Error(), "401 invalid_client") || strings.Contains(err.Error(), "cret") {
		t.Errorf("with a wrong secret: %v", err)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]token.Config{
		"want one of them":             {File: "f", URL: "https://id/token", ClientID: "c", SecretFile: "s"},
		"client_secret_file is not":    {URL: "https://id/token", ClientID: "c"},
		"token_url is not":             {Scope: "s"},
		"want https":                   {URL: "http://id.example.com/token", ClientID: "c", SecretFile: "s"},
		"want an address such as http": {URL: "id.example.com", ClientID: "c", SecretFile: "s"},
	} {
		if err := cfg.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", cfg, err, want)
		}
	}
}
