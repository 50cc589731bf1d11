package guard

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

func handler(cfg Config, next http.HandlerFunc) http.Handler {
	if cfg.Logger == nil {
		cfg.Logger = discard()
	}
	if next == nil {
		next = func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "through") }
	}
	return New(cfg)(next)
}

// What a page elsewhere can make a browser send, and what a program can. Each is tried as GET of the API, as GET of a page, and
// as POST.
func TestForged(t *testing.T) {
	const own, evil = "console.example.com", "evil.example"
	tests := []struct {
		name, host, origin, site string
		api, page, post          int
	}{
		{"own page", own, "https://" + own, "same-origin", 200, 200, 200},
		{"typed in", own, "", "none", 200, 200, 200},
		{"a program", own, "", "", 200, 200, 200},
		{"a program on loopback", "127.0.0.1:8080", "", "", 200, 200, 200},
		{"own page on loopback, old browser", "localhost:8080", "http://localhost:8080", "", 200, 200, 200},
		{"own page on IPv6 loopback", "[::1]:8080", "http://[::1]:8080", "same-origin", 200, 200, 200},
		{"capitals and a dot", "Console.Example.com.:443", "", "", 200, 200, 200},

		{"another site", own, "https://" + evil, "cross-site", 403, 200, 403},
		{"another site, old browser", own, "https://" + evil, "", 200, 200, 403},
		{"another site, sandboxed", own, "null", "cross-site", 403, 200, 403},
		{"another site, sandboxed, old browser", own, "null", "", 200, 200, 403},
		{"a sister", own, "https://wiki.example.com", "same-site", 403, 200, 403},
		{"another port of this machine", "localhost:8080", "http://localhost:3000", "same-site", 403, 200, 403},
		{"another port, old browser", "localhost:8080", "http://localhost:3000", "", 200, 200, 403},

		{"rebinding", evil, "http://" + evil, "same-origin", 421, 421, 421},
		{"rebinding with a port", evil + ":8080", "http://" + evil + ":8080", "same-origin", 421, 421, 421},
		{"rebinding, old browser", evil, "", "", 421, 421, 421},
		{"name that ends alike", "evil" + own, "", "", 421, 421, 421},
		{"name that begins alike", own + "." + evil, "", "", 421, 421, 421},
		{"localhost of somebody else", "localhost." + evil, "", "", 421, 421, 421},
		{"loopback of somebody else", "127.0.0.1." + evil, "", "", 421, 421, 421},
		{"every address", "0.0.0.0:8080", "", "", 421, 421, 421},
		{"unspecified IPv6", "[::]:8080", "", "", 421, 421, 421},
		{"private address", "192.168.1.1", "", "", 421, 421, 421},
		{"user and host", own + "@" + evil, "", "", 421, 421, 421},
		{"host and path", own + "/@" + evil, "", "", 421, 421, 421},
		{"port that is none", own + ":x", "", "", 421, 421, 421},
		{"no host", "", "", "", 421, 421, 421},
		{"two hosts", own + ", " + evil, "", "", 421, 421, 421},
	}
	h := handler(Config{Hosts: []string{own}, Prefix: "/postrider"}, nil)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, c := range []struct {
				method, path string
				want         int
			}{
				{"GET", "/postrider/api/v1/me", tt.api}, {"GET", "/postrider/", tt.page}, {"POST", "/postrider/api/v1/dead/retry", tt.post},
			} {
				r := httptest.NewRequestWithContext(t.Context(), c.method, c.path, strings.NewReader("{}"))
				r.Host = tt.host
				r.RemoteAddr = fmt.Sprintf("127.0.0.1:%d", 1)
				r.Header.Set("Content-Type", "application/json")
				// Nobody has said that this peer is a proxy.
				r.Header.Set("X-Forwarded-Host", own)
				r.Header.Set("X-Forwarded-Proto", "https")
				if tt.origin != "" {
					r.Header.Set("Origin", tt.origin)
				}
				if tt.site != "" {
					r.Header.Set("Sec-Fetch-Site", tt.site)
				}
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if w.Code != c.want {
					t.Errorf("%s %s: got %d, want %d: %s", c.method, c.path, w.Code, c.want, w.Body)
				}
				if w.Code != 200 {
					var p Problem
					if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Status != w.Code || p.Title == "" || p.Type == "" ||
						w.Header().Get("Content-Type") != "application/problem+json" {
						t.Errorf("not a problem: %s", w.Body)
					}
				}
			}
		})
	}
}

func TestContentType(t *testing.T) {
	h := handler(Config{}, nil)
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
		for contentType, want := range map[string]int{
			"application/json": 200, "application/json; charset=utf-8": 200, "Application/JSON": 200, "": 415, "text/plain": 415,
			"application/x-www-form-urlencoded": 415, "multipart/form-data; boundary=x": 415, "text/plain; application/json": 415, ";": 415,
		} {
			r := httptest.NewRequestWithContext(t.Context(), method, "http://localhost/api/v1/x", nil)
			r.Header.Set("Content-Type", contentType)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != want {
				t.Errorf("%s with %q: %d", method, contentType, w.Code)
			}
		}
	}
}

func TestHeadersOfAnswers(t *testing.T) {
	h := handler(Config{Prefix: "/p/"}, nil)
	for path, store := range map[string]string{"/p/": "", "/p/api/v1/me": "no-store", "/p/auth/methods": "no-store", "/p/app.js": ""} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+path, nil))
		got := w.Header()
		for name, want := range map[string]string{
			"Cache-Control": store, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got.Get(name) != want {
				t.Errorf("%s: %s is %q", path, name, got.Get(name))
			}
		}
		csp := got.Get("Content-Security-Policy")
		if !strings.HasPrefix(csp, "default-src 'none';") || strings.Contains(csp, "unsafe") || !strings.Contains(csp, "frame-ancestors 'none'") {
			t.Errorf("%s: %s", path, csp)
		}
	}
}

func TestBodies(t *testing.T) {
	h := handler(Config{}, func(w http.ResponseWriter, r *http.Request) {
		var large *http.MaxBytesError
		if _, err := io.Copy(io.Discard, r.Body); errors.As(err, &large) {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		}
	})
	for _, told := range []bool{true, false} {
		for _, c := range []struct {
			method string
			bytes  int
			want   int
		}{{"POST", 1 << 20, 200}, {"POST", 1<<20 + 1, 413}, {"PUT", 17 << 20, 200}, {"PUT", 17<<20 + 1, 413}} {
			r := httptest.NewRequestWithContext(t.Context(), c.method, "http://localhost/api/v1/x", bytes.NewReader(make([]byte, c.bytes)))
			r.Header.Set("Content-Type", "application/json")
			if !told {
				r.ContentLength = -1
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != c.want {
				t.Errorf("%s of %d bytes, told before: %t: %d", c.method, c.bytes, told, w.Code)
			}
		}
	}
}
