package auth

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
)

func TestProxy(t *testing.T) {
	proxy := Proxy{From: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, UserHeader: "X-Forwarded-User", RoleHeader: "X-Forwarded-Groups"}
	groups := proxy
	groups.Roles = map[string]Role{"ops": Operator, "Root": Admin}
	tests := []struct {
		name        string
		proxy       Proxy
		from        string
		user, roles []string
		status      int
		want        string
	}{
		{"known", proxy, "10.0.0.1:1", []string{"ann"}, []string{"Operator"}, 200, "ann operator proxy"},
		{"IPv4 in IPv6", proxy, "[::ffff:10.0.0.1]:1", []string{"ann"}, []string{"admin"}, 200, "ann admin proxy"},
		{"no role header", proxy, "10.0.0.1:1", []string{"ann"}, nil, 200, "ann viewer proxy"},
		{"unknown role", proxy, "10.0.0.1:1", []string{"ann"}, []string{"king"}, 403, ""},
		{"empty role", proxy, "10.0.0.1:1", []string{"ann"}, []string{""}, 403, ""},
		{"groups", groups, "10.0.0.1:1", []string{"ann"}, []string{"staff, ops,Root"}, 200, "ann admin proxy"},
		{"groups, separated otherwise", groups, "10.0.0.1:1", []string{"ann"}, []string{"staff|ops"}, 200, "ann operator proxy"},
		{"groups without a role", groups, "10.0.0.1:1", []string{"ann"}, []string{"admin"}, 403, ""},
		{"not the proxy", proxy, "192.0.2.1:1", []string{"ann"}, []string{"admin"}, 401, ""},
		{"loopback is not the proxy", proxy, "127.0.0.1:1", []string{"ann"}, []string{"admin"}, 401, ""},
		{"no user", proxy, "10.0.0.1:1", nil, []string{"admin"}, 401, ""},
		{"empty user", proxy, "10.0.0.1:1", []string{" "}, []string{"admin"}, 401, ""},
		{"two users", proxy, "10.0.0.1:1", []string{"eve", "ann"}, []string{"admin"}, 403, ""},
		{"two roles", proxy, "10.0.0.1:1", []string{"ann"}, []string{"viewer", "admin"}, 403, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := newAuth(t, Config{Proxy: &tt.proxy}, "")
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/me", nil)
			r.RemoteAddr = tt.from
			r.Header["X-Forwarded-User"], r.Header["X-Forwarded-Groups"] = tt.user, tt.roles
			w := httptest.NewRecorder()
			a.Wrap(whoami()).ServeHTTP(w, r)
			if w.Code != tt.status || tt.want != "" && w.Body.String() != tt.want {
				t.Errorf("got %d %s", w.Code, w.Body)
			}
		})
	}
	t.Run("removed", func(t *testing.T) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.Header.Set("X-Forwarded-User", "ann")
		newAuth(t, Config{Proxy: &proxy}, "").Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Forwarded-User") != "" {
				t.Error("what a stranger says is passed on")
			}
		})).ServeHTTP(httptest.NewRecorder(), r)
	})
}

// Without a configuration the machine's owner is meant, and nobody who comes from elsewhere or through a proxy.
func TestLocal(t *testing.T) {
	a := newAuth(t, Config{}, "")
	tests := []struct {
		from, forwarded string
		status          int
	}{
		{"127.0.0.1:1", "", 200}, {"[::1]:1", "", 200}, {"[::ffff:127.0.0.1]:1", "", 200},
		{"192.0.2.1:1", "", 401}, {"127.0.0.1:1", "192.0.2.1", 401}, {"@", "", 401},
	}
	for _, tt := range tests {
		header := map[string]string{}
		if tt.forwarded != "" {
			header["X-Forwarded-For"] = tt.forwarded
		}
		resp := request{from: tt.from, header: header}.do(t, a)
		if got := body(t, resp); resp.StatusCode != tt.status || tt.status == 200 && got != "local admin local" {
			t.Errorf("%+v: %d %s", tt, resp.StatusCode, got)
		}
	}
}
