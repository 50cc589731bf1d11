package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/postrider/postrider/admin/console/auth"
	"github.com/postrider/postrider/admin/console/internal/api"
)

// bodies are requests that a route understands, so that nothing but the role decides.
var bodies = map[string]any{
	"POST /feeds":                 dict{"name": "audit"},
	"DELETE /feeds/{name}":        dict{"why": "test"},
	"POST /feeds/{name}/rewind":   dict{"why": "test", "time": "2026-01-01T00:00:00Z", "dry_run": true},
	"POST /dead/act":              dict{"act": "retry", "filter": dict{"feed": "none"}},
	"PUT /dead/{feed}/{id}":       dict{"why": "test"},
	"POST /keys/act":              dict{"act": "retry", "feed": "none", "key": "none"},
	"POST /sagas/{name}/{id}/act": dict{"act": "retry"},
	"POST /replays":               dict{"filter": dict{"feed": "none"}, "dead": true, "dry_run": true},
}

// TestRoles asks for every route with every role: only the roles in the table of routes get in.
func TestRoles(t *testing.T) {
	s := inMemory(t)
	fill := strings.NewReplacer("{name}", "none", "{feed}", "none", "{job}", "none", "{id}", "7")
	for _, r := range api.Routes() {
		for _, role := range []auth.Role{"", auth.Viewer, auth.Operator, auth.Admin} {
			if strings.HasSuffix(r.Path, "/tail") || strings.HasSuffix(r.Path, "/events") {
				if role.May(r.Least) { // it would not end; TestEvents and TestTail read them
					continue
				}
			}
			body := bodies[r.Method+" "+r.Path]
			if body == nil && r.Method != http.MethodGet {
				body = dict{}
			}
			status, text := s.raw(role, r.Method, fill.Replace(r.Path), body)
			switch {
			case role == "" && status != http.StatusUnauthorized:
				t.Errorf("%s %s answers nobody %d", r.Method, r.Path, status)
			case role != "" && !role.May(r.Least) && status != http.StatusForbidden:
				t.Errorf("%s %s answers a %s %d", r.Method, r.Path, role, status)
			case role.May(r.Least) && (status == http.StatusUnauthorized || status == http.StatusForbidden || status >= 500):
				t.Errorf("%s %s answers a %s %d %s", r.Method, r.Path, role, status, text)
			}
		}
		for act, least := range r.Acts {
			body := dict{"act": act, "filter": dict{"feed": "none"}, "why": "test"}
			for role := range tokens {
				status, text := s.raw(role, r.Method, r.Path, body)
				if role.May(least) == (status == http.StatusForbidden) {
					t.Errorf("%s %s to %s answers a %s %d %s", r.Method, r.Path, act, role, status, text)
				}
			}
		}
		if r.Method != http.MethodGet && r.Least == auth.Viewer {
			t.Errorf("%s %s changes something, and viewers may", r.Method, r.Path)
		}
	}
	if status, _ := s.raw(auth.Admin, "GET", "/none", nil); status != http.StatusNotFound {
		t.Errorf("a route that is not there answers %d", status)
	}
}
