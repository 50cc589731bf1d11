package console_test

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/admin/console"
	"github.com/postrider/postrider/admin/console/auth"
	"github.com/postrider/postrider/admin/console/internal/api"
)

// TestConfig tells everything that is wrong at once.
func TestConfig(t *testing.T) {
	_, err := console.New(console.Config{
		Databases: []console.Database{{Name: "a"}, {Name: "a"}, {}}, Prefix: `/"x`, Redact: []string{"card"}, TraceURL: "javascript:{trace_id}",
		Sample: time.Millisecond, Access: auth.Config{Tokens: []auth.Token{{Name: "ann", Secret: "short"}}},
	})
	for _, want := range []string{`two databases are called "a"`, "no name", "prefix", "card", "trace URL", "sample", "ann"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in %v", want, err)
		}
	}
	if _, err := console.New(console.Config{}); err == nil {
		t.Error("a console of nothing")
	}
}

// TestPages serves the application at every path that is nothing else, with the prefix in it.
func TestPages(t *testing.T) {
	s := inMemory(t)
	get := func(path string, header ...string) (*http.Response, string) {
		t.Helper()
		r := must(http.NewRequest("GET", strings.TrimSuffix(s.url, "/ops")+path, nil))
		if len(header) == 2 {
			r.Header.Set(header[0], header[1])
		}
		answer := must(http.DefaultTransport.RoundTrip(r))
		defer func() { _ = answer.Body.Close() }()
		return answer, string(must(io.ReadAll(answer.Body)))
	}
	for _, path := range []string{"/ops/", "/ops/dead?feed=default", "/ops/messages/01890a5d-ac96-774b-bcce-b302099a8057"} {
		answer, text := get(path)
		if answer.StatusCode != 200 || !strings.Contains(text, `<base href="/ops/" />`) || answer.Header.Get("Cache-Control") != "no-cache" {
			t.Errorf("%s: %d %v %s", path, answer.StatusCode, answer.Header, text)
		}
		if again, _ := get(path, "If-None-Match", answer.Header.Get("ETag")); again.StatusCode != 304 {
			t.Errorf("%s: %d when nothing has changed", path, again.StatusCode)
		}
	}
	if answer, _ := get("/ops"); answer.StatusCode != http.StatusPermanentRedirect || answer.Header.Get("Location") != "/ops/" {
		t.Errorf("the prefix alone: %d %v", answer.StatusCode, answer.Header)
	}
	_, text := get("/ops/")
	script := "/ops/" + regexp.MustCompile(`assets/[^"]+\.js`).FindString(text)
	_, plain := get(script, "Accept-Encoding", "identity")
	answer, packed := get(script, "Accept-Encoding", "gzip")
	unpacked := must(io.ReadAll(must(gzip.NewReader(strings.NewReader(packed)))))
	if answer.Header.Get("Content-Encoding") != "gzip" || string(unpacked) != plain || !strings.Contains(answer.Header.Get("Cache-Control"), "immutable") {
		t.Errorf("the script: %v", answer.Header)
	}
	if len(packed) > 120_000 {
		t.Errorf("the script has %d bytes, packed: want at most 120,000", len(packed))
	}
	for _, path := range []string{"/", "/opsx", "/ops/assets/none.js", "/ops/api/none"} {
		if answer, text := get(path, "Authorization", "Bearer "+tokens[auth.Viewer]); answer.StatusCode != 404 {
			t.Errorf("%s: %d %s", path, answer.StatusCode, text)
		}
	}
}

// broken is a database that does not answer.
type broken struct{ err error }

func (b broken) Gauges(context.Context) (*admin.Standing, error) { return nil, b.err }
func (b broken) Health(context.Context) (*admin.Health, error)   { return nil, b.err }

// TestUnreachable says that a database does not answer, and no secret of its address.
func TestUnreachable(t *testing.T) {
	down := broken{errors.Join(errors.New("connect to postgres://ann:geheim@db"), &net.OpError{Op: "dial", Err: errors.New("refused")})}
	odd := broken{errors.New("password=geheim of postgres://ann:geheim@db is odd")}
	s := inMemory(t, func(cfg *console.Config) {
		cfg.Databases = append(cfg.Databases, console.Database{Name: "down", Gauges: down}, console.Database{Name: "odd", Gauges: odd})
	})
	for path, want := range map[string]int{"/feeds?db=down": 503, "/feeds?db=odd": 500, "/overview?db=down": 200, "/databases": 200, "/dead?db=down": 404} {
		if status, text := s.raw(auth.Admin, "GET", path, nil); status != want || strings.Contains(string(text), "geheim") {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	var o api.Overview
	s.wants(auth.Viewer, "GET", "/overview?db=down", nil, &o)
	if o.Healthy || len(o.Problems) != 1 || o.Problems[0].Kind != "unreachable" {
		t.Errorf("%+v", o)
	}
	var all []api.DatabaseHealth
	s.wants(auth.Viewer, "GET", "/databases", nil, &all)
	if len(all) != 3 || all[0].Error != "" || !strings.HasPrefix(all[1].Error, "unreachable") {
		t.Errorf("%+v", all)
	}
}

// TestOverview tells what is wrong, and the command that helps.
func TestOverview(t *testing.T) {
	s := onPostgres(t)
	s.enqueue(bad(2)...)
	s.enqueue(messages("bad.order", 1)...)
	s.relay(2)
	if err := s.db.Feeds.PauseFeed(t.Context(), admin.By{Who: "test"}, "default", true); err != nil {
		t.Fatal(err)
	}
	var o api.Overview
	s.await("the overview", func() bool {
		s.wants(auth.Viewer, "GET", "/overview", nil, &o)
		return len(o.Feeds) == 1 && o.Feeds[0].Paused
	})
	kinds := ""
	for _, p := range o.Problems {
		kinds += p.Kind + " "
		if p.Kind == "dead" && (p.Command != "postrider dead ls --feed default --schema "+s.db.Schema || p.Page != "/dead?feed=default" || p.Severity != "problem") {
			t.Errorf("%+v", p)
		}
	}
	if want := "no_relay blocked dead paused "; kinds != want && kinds != strings.TrimPrefix(want, "no_relay ") { // the relay may be remembered
		t.Errorf("%s, want %s", kinds, want)
	}
	if o.Totals.Dead.N != 2 || o.Healthy {
		t.Errorf("%+v", o.Totals)
	}
}
