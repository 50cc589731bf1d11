package console_test

import (
	"encoding/base64"
	"net/url"
	"strings"
	"testing"

	"github.com/postrider/postrider/admin/console/auth"
	"github.com/postrider/postrider/admin/console/internal/api"
)

// TestPaging walks lists by pages while rows are added: what was there is seen exactly once.
func TestPaging(t *testing.T) {
	t.Run("memory", func(t *testing.T) { testPaging(t, inMemory(t)) })
	t.Run("postgres", func(t *testing.T) { testPaging(t, onPostgres(t)) })
}

func testPaging(t *testing.T, s *scene) {
	s.enqueue(bad(23)...)
	s.relay(23)
	walk := func(path string, limit string, more func()) map[string]int {
		t.Helper()
		seen := make(map[string]int)
		for cursor := ""; ; {
			var page api.Page[struct{ ID, Key string }]
			s.wants(auth.Viewer, "GET", path+"?limit="+limit+"&cursor="+url.QueryEscape(cursor), nil, &page)
			for _, item := range page.Items {
				seen[item.ID+" "+item.Key]++
			}
			if page.Cursor == "" {
				return seen
			}
			if cursor == page.Cursor {
				t.Fatal("the cursor stays where it was")
			}
			cursor = page.Cursor
			more()
		}
	}
	for path, n := range map[string]int{"/messages": 23, "/dead": 23, "/sagas": 3, "/idempotency": 5} {
		limit, more := "7", func() { s.enqueue(good(3)...) }
		if n < 10 {
			limit, more = "2", func() {}
		}
		seen := walk(path, limit, more)
		for id, times := range seen {
			if times != 1 {
				t.Errorf("%s: %s was seen %d times", path, id, times)
			}
		}
		if len(seen) < n {
			t.Errorf("%s: %d of %d were seen", path, len(seen), n)
		}
	}
	if seen := walk("/audit", "2", func() {}); len(seen) > 1 {
		t.Errorf("records: %v", seen)
	}
	var first api.Page[api.DeadRow]
	s.wants(auth.Viewer, "GET", "/dead?limit=1", nil, &first)
	for _, cursor := range []string{"x", "%%%", base64.RawURLEncoding.EncodeToString([]byte(`{"l":"dead"}`)), first.Cursor + "A"} {
		if status, text := s.raw(auth.Viewer, "GET", "/dead?cursor="+url.QueryEscape(cursor), nil); status != 422 {
			t.Errorf("cursor %q: %d %s", cursor, status, text)
		}
	}
	if status, _ := s.raw(auth.Viewer, "GET", "/messages?cursor="+first.Cursor, nil); status != 422 {
		t.Errorf("a cursor of another list is taken: %d", status)
	}
	for _, limit := range []string{"0", "501", "-1", "x"} {
		status, text := s.raw(auth.Viewer, "GET", "/dead?limit="+limit, nil)
		if status != 422 || !strings.Contains(string(text), `"type":"about:blank"`) || !strings.Contains(string(text), "query.limit") {
			t.Errorf("limit %s: %d %s", limit, status, text)
		}
	}
}
