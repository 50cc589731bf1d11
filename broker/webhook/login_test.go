package webhook_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/webhook"
)

func secretFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret")
	replaceFile(t, file, text)
	return file
}

func replaceFile(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	// File systems have coarse timestamps.
	if err := os.Chtimes(file, time.Time{}, time.Now().Add(time.Duration(changes.Add(1))*time.Second)); err != nil {
		t.Fatal(err)
	}
}

var changes atomic.Int64

func order() []postrider.Message {
	return []postrider.Message{postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: "42"}, []byte("{}"))}
}

// TestHeadersFile checks that headers of a file are sent with every request, and that a changed
// file is used at once.
func TestHeadersFile(t *testing.T) {
	t.Parallel()
	var got atomic.Pointer[http.Header]
	endpoint := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got.Store(&r.Header) }))
	defer endpoint.Close()
	file := secretFile(t, "# of the shop\nX-Api-Key: one\n\nx-tenant : acme\n")
	p, err := webhook.NewPublisher(webhook.Config{URL: endpoint.URL, AllowLoopback: true, HeadersFile: file})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, want := range []string{"one", "two"} {
		replaceFile(t, file, "X-Api-Key: "+want+"\nX-Tenant: acme")
		if errs := p.Publish(t.Context(), order()); errs != nil {
			t.Fatal(errs)
		}
		if h := got.Load(); h.Get("X-Api-Key") != want || h.Get("X-Tenant") != "acme" {
			t.Errorf("got %v, want the key %s", *h, want)
		}
	}
	m := order()
	m[0].Headers = map[string]string{"x-api-key": "mine"}
	if errs := p.Publish(t.Context(), m); errs == nil || postrider.ClassOf(errs[0]) != postrider.ClassPermanent {
		t.Errorf("a message that brings such a header: %v", errs)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if errs := p.Publish(t.Context(), order()); errs == nil || postrider.ScopeOf(errs[0]) != postrider.ScopeDestination {
		t.Errorf("without the file: %v, want an error about the destination", errs)
	}
}

// TestBearerToken checks that a provider's token is sent with every request, and replaced after it
// was refused.
func TestBearerToken(t *testing.T) {
	t.Parallel()
	var good, asked atomic.Int64
	good.Store(1)
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"access_token": "t%d", "token_type": "bearer", "expires_in": 3600}`, asked.Add(1))
	}))
	defer provider.Close()
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != fmt.Sprintf("Bearer t%d", good.Load()) {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer endpoint.Close()
	p, err := webhook.NewPublisher(webhook.Config{
		URL: endpoint.URL, AllowLoopback: true, TokenURL: provider.URL, ClientID: "shop", SecretFile: secretFile(t, "secret"),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for range 3 {
		if errs := p.Publish(t.Context(), order()); errs != nil {
			t.Fatal(errs)
		}
	}
	good.Store(2) // the first token was revoked
	if errs := p.Publish(t.Context(), order()); errs == nil {
		t.Error("a token that was withdrawn has let us in")
	}
	if errs := p.Publish(t.Context(), order()); errs != nil || asked.Load() != 2 {
		t.Errorf("after another token, the %dth: %v", asked.Load(), errs)
	}
}

// TestProxy sends through a proxy to a host that only the proxy can resolve.
func TestProxy(t *testing.T) {
	t.Parallel()
	var host atomic.Pointer[string]
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { host.Store(&r.URL.Host) }))
	defer proxy.Close()
	p, err := webhook.NewPublisher(webhook.Config{URL: "http://only.there.invalid/hook", Proxy: proxy.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if errs := p.Publish(t.Context(), order()); errs != nil || *host.Load() != "only.there.invalid" {
		t.Error(errs)
	}
}

// carrier is a custom transport.
type carrier func(*http.Request) (*http.Response, error)

func (c carrier) RoundTrip(r *http.Request) (*http.Response, error) { return c(r) }

// TestTransport checks that a custom transport is used, and that contradictory settings are
// refused.
func TestTransport(t *testing.T) {
	t.Parallel()
	sent := 0
	own := carrier(func(*http.Request) (*http.Response, error) {
		sent++
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	})
	p, err := webhook.NewPublisher(webhook.Config{URL: "https://example.com", Transport: own})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if errs := p.Publish(t.Context(), order()); errs != nil || sent != 1 {
		t.Error(sent, errs)
	}
	for want, cfg := range map[string]webhook.Config{
		"these are the transport's":   {Transport: own, Proxy: "http://proxy:1"},
		"want one of them":            {URL: "https://u:p@example.com", TokenFile: "f"},
		"line 1: Host cannot be set":  {HeadersFile: secretFile(t, "Host: x")},
		"line 2 is not like":          {HeadersFile: secretFile(t, "A: 1\nsecret-value")},
		"headers_file has Authorizat": {HeadersFile: secretFile(t, "Authorization: x"), TokenFile: "f"},
		"proxy: want an address":      {Proxy: "proxy"},
	} {
		if cfg.URL == "" {
			cfg.URL = "https://example.com"
		}
		if _, err := webhook.NewPublisher(cfg); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret-value") {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
