package config

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestRelayPauses holds that the order and the pauses of a feed arrive at its relay.
func TestRelayPauses(t *testing.T) {
	text := strings.Replace(good, "order: strict", "order: skip", 1)
	plan, err := mustParse(t, text).Feed("default")
	if err != nil {
		t.Fatal(err)
	}
	if r := plan.Relay; r.Order != "skip" || r.Retry.Attempts != 5 || r.Retry.First != time.Second || r.Retry.Most != 10*time.Minute || r.Retry.Pauses != nil {
		t.Errorf("defaults %+v", r)
	}
	f := mustParse(t, strings.Replace(text, "lease: 20s", "retry: {pauses: [1s, '${NONE:-5s}', 30s], attempts: 9, max_age: 24h}\n      outage: {first: 50ms}", 1))
	if plan, err = f.Feed("default"); err != nil {
		t.Fatal(err)
	}
	want := []time.Duration{time.Second, 5 * time.Second, 30 * time.Second}
	if r := plan.Relay; !slices.Equal(r.Retry.Pauses, want) || r.Retry.Attempts != 9 || r.Retry.First != 0 || r.Retry.MaxAge != 24*time.Hour || r.Outage.First != 50*time.Millisecond {
		t.Errorf("series %+v", r)
	}
	shown, err := f.Redacted().YAML()
	if err != nil || !strings.Contains(string(shown), "order: skip") || strings.Contains(string(shown), "most: 10m") {
		t.Errorf("%v\n%s", err, shown)
	}
	if err := validateText(t, string(shown)); err != nil {
		t.Error(err)
	}
	if again := mustParse(t, string(shown)); !reflect.DeepEqual(again.Redacted(), f.Redacted()) {
		t.Errorf("read again:\n%+v", again.Redacted())
	}
}

func TestHealth(t *testing.T) {
	f := mustParse(t, strings.Replace(good, "feeds:\n", "health: {listen: '0.0.0.0:8710', token: health-secret}\nfeeds:\n", 1))
	asJSON, err := json.Marshal(f.Redacted())
	if err != nil || !strings.Contains(string(asJSON), `"health":{"listen":"0.0.0.0:8710","token":"***"}`) || strings.Contains(string(asJSON), "health-secret") {
		t.Errorf("%v\n%s", err, asJSON)
	}
	for listen, allowed := range map[string]bool{
		"": true, "localhost:1": true, "[::1]:0": true, "127.1.2.3:99": true, "10.0.0.1:99": false, "host:99": false, "[::]:99": false,
		"127.0.0.1": false, "127.0.0.1:http": false, "127.0.0.1:70000": false,
	} {
		if err := (Health{Listen: listen}).Validate(); (err == nil) != allowed {
			t.Errorf("%q: %v", listen, err)
		}
	}
}

func TestPools(t *testing.T) {
	f := File{
		Databases: map[string]Database{"a": {URL: "host=a"}, "b": {URL: "host=b"}, "b2": {URL: "host=b", Schema: "other"}},
		Feeds:     map[string]Feed{"1": {Database: "a"}, "2": {Database: "b"}, "3": {Database: "b"}, "4": {Database: "b2"}},
	}
	for connections, want := range map[int]map[string]int{
		0: {"host=a": 4, "host=b": 12},
		4: {"host=a": 2, "host=b": 2},
		7: {"host=a": 2, "host=b": 5},
		9: {"host=a": 2, "host=b": 7},
		3: nil,
	} {
		f.Connections = connections
		got, err := f.Pools(keys(f.Feeds))
		if !maps.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%d: %v, %v, want %v", connections, got, err, want)
		}
	}
	f.Connections = 0
	if got, err := f.Pools([]string{"2"}); err != nil || got["host=b"] != 4 || len(got) != 1 {
		t.Errorf("one feed: %v, %v", got, err)
	}
}

func TestChanges(t *testing.T) {
	for name, c := range map[string]struct {
		old, replacement string
		routes, others   []string
	}{
		"nothing":      {"feeds:", "# a remark\nfeeds:", nil, nil},
		"route":        {"verify_document", "check_document", []string{"default"}, nil},
		"default":      {"destination: events", "destination: jobs", []string{"default"}, nil},
		"filter":       {"acme, \"\"", "acme", nil, []string{"feeds.default"}},
		"relay":        {"lease: 20s", "lease: 21s", nil, []string{"feeds.default"}},
		"new feed":     {"feeds:\n", "feeds:\n  more: {destination: jobs}\n", nil, []string{"feeds.more"}},
		"renamed feed": {"  default:\n", "  other:\n", nil, []string{"feeds.default", "feeds.other"}},
		"destination":  {"window: 9", "window: 8", nil, []string{"destinations.jobs"}},
		"database":     {"${DATABASE_URL}", "host=h", nil, []string{"databases.app"}},
		"process":      {"feeds:\n", "connections: 9\nhealth: {listen: 'localhost:0'}\nfeeds:\n", nil, []string{"connections", "health"}},
	} {
		routes, others := mustParse(t, good).Changes(mustParse(t, spoil(t, c.old, c.replacement)))
		if !slices.Equal(routes, c.routes) || !slices.Equal(others, c.others) {
			t.Errorf("%s: routes of %q, and %q", name, routes, others)
		}
	}
}
