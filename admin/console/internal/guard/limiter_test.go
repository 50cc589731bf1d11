package guard

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"
)

func TestRate(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	h := handler(Config{Rate: 5, Proxies: proxies}, nil)
	ask := func(from, forwarded string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/api/v1/me", nil)
		r.RemoteAddr = from
		if forwarded != "" {
			r.Header.Set("X-Forwarded-For", forwarded)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	drain := func(from string, forwarded func(int) string) (refused *httptest.ResponseRecorder) {
		for i := range 40 {
			if w := ask(from, forwarded(i)); w.Code == http.StatusTooManyRequests {
				return w
			}
		}
		return nil
	}
	fixed := func(s string) func(int) string { return func(int) string { return s } }
	w := drain("192.0.2.1:1", fixed(""))
	if w == nil || w.Header().Get("Retry-After") != "1" || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("40 at once: %v", w)
	}
	if w := ask("192.0.2.2:1", ""); w.Code != 200 {
		t.Errorf("another client: %d", w.Code)
	}
	forge := func(i int) string { return fmt.Sprintf("203.0.113.%d", i) }
	if drain("192.0.2.3:1", forge) == nil {
		t.Error("a client gets around it with X-Forwarded-For")
	}
	if drain("10.0.0.1:1", func(i int) string { return forge(i) + ", 198.51.100.1" }) == nil {
		t.Error("a client behind a proxy gets around it with X-Forwarded-For")
	}
	if w := ask("10.0.0.1:1", "198.51.100.2"); w.Code != 200 {
		t.Errorf("another client behind the proxy: %d", w.Code)
	}
	if drain("[2001:db8::1]:1", fixed("")) == nil || ask("[2001:db8::2]:1", "").Code != 429 || ask("[2001:db8:0:1::1]:1", "").Code != 200 {
		t.Error("IPv6: one customer is one client")
	}
}

func TestLimiterIsBounded(t *testing.T) {
	l, now := NewLimiter(1, 2, 100), time.Now()
	refused := 0
	for i := range 1000 {
		if l.Take(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), now) > 0 {
			refused++
		}
	}
	if len(l.buckets) != 100 || refused != 1000-100-2 {
		t.Errorf("%d clients remembered, %d requests refused: those over the limit share one bucket", len(l.buckets), refused)
	}
	if wait := l.Take(netip.AddrFrom4([4]byte{10, 0, 0, 7}), now); wait > 0 {
		t.Errorf("a client that is remembered waits %v with those that are not", wait)
	}
	if wait := l.Take(netip.MustParseAddr("192.0.2.1"), now.Add(time.Minute)); wait > 0 || len(l.buckets) != 1 {
		t.Errorf("later: wait %v, %d remembered", wait, len(l.buckets))
	}
	ip := netip.MustParseAddr("192.0.2.9")
	now = now.Add(time.Hour)
	l.Take(ip, now)
	l.Take(ip, now)
	if w := l.Wait(ip, now); w < 999*time.Millisecond || w > time.Second {
		t.Errorf("wait: %v", w)
	}
	if w := l.Wait(ip, now.Add(time.Second)); w != 0 {
		t.Errorf("after a second: %v", w)
	}
}

func TestClient(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	for _, tt := range []struct{ from, forwarded, want string }{
		{"192.0.2.1:1", "", "192.0.2.1"},
		{"192.0.2.1:1", "203.0.113.1", "192.0.2.1"},
		{"10.0.0.1:1", "203.0.113.1", "203.0.113.1"},
		{"10.0.0.1:1", "127.0.0.1, 203.0.113.1, 10.0.0.2", "203.0.113.1"},
		{"10.0.0.1:1", "203.0.113.1:4711", "203.0.113.1"},
		{"[::1]:1", "[2001:db8::1]", "2001:db8::1"},
		{"10.0.0.1:1", "203.0.113.1, unknown", "10.0.0.1"},
		{"10.0.0.1:1", "", "10.0.0.1"},
		{"@", "203.0.113.1", "invalid IP"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.RemoteAddr = tt.from
		r.Header.Set("X-Forwarded-For", tt.forwarded)
		r.Header.Set("X-Forwarded-Proto", "https")
		if got := Client(r, proxies).String(); got != tt.want {
			t.Errorf("%+v: %s", tt, got)
		}
		if Secure(r, proxies) != Within(Peer(r), proxies) {
			t.Errorf("%+v: X-Forwarded-Proto", tt)
		}
	}
}

// TestSecure: a proxy that says anything but https, once, says that the client has no TLS.
func TestSecure(t *testing.T) {
	for _, c := range []struct {
		said []string
		want bool
	}{{nil, false}, {[]string{"https"}, true}, {[]string{"HTTPS"}, true}, {[]string{"http"}, false}, {[]string{"https", "http"}, false}} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.RemoteAddr = "10.0.0.1:1"
		r.Header["X-Forwarded-Proto"] = c.said
		if got := Secure(r, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}); got != c.want {
			t.Errorf("%q: %t", c.said, got)
		}
	}
}
