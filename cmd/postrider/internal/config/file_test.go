package config

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/memory"
	"github.com/postrider/postrider/broker/route"
	"github.com/postrider/postrider/relay"
)

func TestParse(t *testing.T) {
	f := mustParse(t, good)
	want := File{
		Databases: map[string]Database{"app": {URL: "postgres://rider:db-secret@host/app"}},
		Destinations: map[string]Destination{
			"jobs":   {URL: "fake://user:broker-secret@host", Options: map[string]string{"password": "file-secret", "window": "9"}},
			"events": {URL: "fakes://other", Options: map[string]string{"hosts": "a,b"}},
		},
		Feeds: map[string]Feed{"default": {
			Destination: "events",
			Only:        route.Match{Tenants: []string{"acme", ""}},
			Order:       "strict",
			Relay:       relay.Config{Lease: 20 * time.Second, BatchSize: 200},
			Routes: []route.Rule{
				{Match: route.Match{Types: []string{"document_uploaded"}}, Destination: "jobs", Name: "verify_document", ID: "verify_{id}"},
				{Match: route.Match{Types: []string{"debug.*"}}, Drop: true},
				{Name: "{aggregate_type}.events"},
			},
		}},
	}
	got := *f
	got.source = source{}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v, want\n%+v", got, want)
	}
	if err := f.Validate(); err != nil {
		t.Error(err)
	}
	if err := want.Validate(); err != nil {
		t.Errorf("the same in Go: %v", err)
	}
	if w := f.Warnings(); len(w) != 0 {
		t.Errorf("warnings: %v", w)
	}
}

func TestVariables(t *testing.T) {
	for text, want := range map[string]string{
		"${BATCH}":              "200",
		"a-${BATCH}-${NONE:-b}": "a-200-b",
		"${EMPTY:-x}":           "x",
		"${NONE:-}y":            "y",
		"$BATCH $ {x}":          "$BATCH $ {x}",
		"$${BATCH}":             "${BATCH}",
		"${NONE:-a:-b}":         "a:-b",
	} {
		f, err := parse(strings.Replace(good, "verify_{id}", "'"+strings.ReplaceAll(text, "{x}", "x")+"{id}'", 1))
		want := strings.ReplaceAll(want, "{x}", "x") + "{id}"
		if err != nil {
			if text != "$${BATCH}" { // {BATCH} then is a placeholder, and an unknown one
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		if got := f.Feeds["default"].Routes[0].ID; got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	// What a variable holds is a value, not more of the file.
	environment["INJECT"] = "x\nfeeds: {}"
	defer delete(environment, "INJECT")
	f, err := parse(strings.Replace(good, "window: 9", "text: ${INJECT}", 1))
	if err != nil || f.Destinations["jobs"].Options["text"] != "x\nfeeds: {}" {
		t.Errorf("%v", err)
	}
}

func TestLoad(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "p.yaml")
	if err := os.WriteFile(filepath.Join(folder, "url"), []byte("fake://x\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := "databases: {a: {url: 'host=h'}}\ndestinations: {d: {url: '${file:url}'}}\nfeeds: {default: }\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Load(path)
	if err != nil || f.Destinations["d"].URL != "fake://x" {
		t.Fatalf("%+v, %v", f, err)
	}
	if _, err := Load(filepath.Join(folder, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func TestPlan(t *testing.T) {
	f := mustParse(t, good)
	p, err := f.Feed("default")
	if err != nil {
		t.Fatal(err)
	}
	if p.DatabaseName != "app" || p.Database.Schema != "postrider" || p.Relay.Feed != "default" || p.Relay.BatchSize != 200 || p.Relay.ReadAhead != 4000 || p.Relay.PollMin == 0 {
		t.Errorf("%+v", p)
	}
	jobs, events := memory.New(), memory.New()
	r, err := p.Router(map[string]postrider.Publisher{"jobs": jobs, "events": events}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Publish(t.Context(), []postrider.Message{
		{Type: "document_uploaded", TenantID: "acme"}, {Type: "x", AggregateType: "order"}, {Type: "x", TenantID: "other"}, {Type: "debug.x"},
	})
	if jobs.Messages()[0].Topic != "verify_document" || events.Messages()[0].Topic != "order.events" || r.Passed() != 1 || r.Dropped() != 1 {
		t.Errorf("%+v, %+v", jobs.Messages(), events.Messages())
	}
	if _, err := f.Feed("other"); err == nil || !strings.Contains(err.Error(), "there are default") {
		t.Error(err)
	}
	if pub, err := f.Destination("jobs", nil); err != nil || pub == nil {
		t.Error(err)
	}
	if _, err := f.Destination("none", nil); err == nil || !strings.Contains(err.Error(), "events, jobs") {
		t.Error(err)
	}
	f.Destinations["jobs"].Options["text"] = "bad"
	if _, err := f.Destination("jobs", nil); err == nil || !strings.Contains(err.Error(), "destinations.jobs: text and mode") {
		t.Error(err)
	}
}

// TestValidateInGo holds that a File without a file says the same, without places.
func TestValidateInGo(t *testing.T) {
	f := File{
		Databases:    map[string]Database{"a": {}},
		Destinations: map[string]Destination{"d": {URL: "fake://x", Options: map[string]string{"window": "x", "nothing": "1"}}},
		Feeds: map[string]Feed{"f": {
			Order: "none", Relay: relay.Config{BatchSize: 9000}, Routes: []route.Rule{{Name: "{x}"}, {Destination: "e"}},
		}},
	}
	err := f.Validate()
	var mistakes Mistakes
	if !errors.As(err, &mistakes) {
		t.Fatalf("%v", err)
	}
	var paths []string
	for _, m := range mistakes {
		paths = append(paths, m.Path)
		if m.Line != 0 || m.File != "" {
			t.Errorf("%v has a place", m)
		}
	}
	slices.Sort(paths)
	want := []string{
		"databases.a.url", "destinations.d.nothing", "destinations.d.window", "feeds.f.order", "feeds.f.relay.batch",
		"feeds.f.routes[0].name", "feeds.f.routes[1]", "feeds.f.routes[1].destination",
	}
	if !slices.Equal(paths, want) {
		t.Errorf("paths\n%q, want\n%q\n%v", paths, want, err)
	}
}

func TestWarnings(t *testing.T) {
	text := strings.Replace(good, "  events:\n", "  spare: {url: 'stdout:', group: g}\n  events:\n", 1)
	text = strings.Replace(text, "destinations:", "  old: {url: host=h}\ndestinations:", 1)
	text = strings.Replace(text, "    destination: events", "    database: app\n    destination: events", 1)
	got := mustParse(t, text).Warnings()
	want := []string{"4:8: databases.old: no feed uses it", "10:10: destinations.spare: no feed uses it", "destinations.spare.group: only consumers"}
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || !strings.Contains(got[i].String(), want[i]) {
			t.Fatalf("warnings\n%v, want\n%q", got, want)
		}
	}
}

func TestRedacted(t *testing.T) {
	f := mustParse(t, strings.Replace(good, "window: 9", "text: '${file:testdata/secret}'", 1))
	shown := f.Redacted()
	asYAML, err := shown.YAML()
	if err != nil {
		t.Fatal(err)
	}
	asJSON, err := json.Marshal(shown)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{string(asYAML), string(asJSON)} {
		if strings.Contains(text, "secret") {
			t.Errorf("a secret is in\n%s", text)
		}
		for _, want := range []string{"fake://user:***@host", "postgres://rider:***@host/app", "cloudevents", "20s", "outage", "{id}", "acme"} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is not in\n%s", want, text)
			}
		}
	}
	// What was shown says the same when it is read.
	again, err := parse(string(asYAML))
	if err != nil {
		t.Fatalf("%v in\n%s", err, asYAML)
	}
	if !reflect.DeepEqual(again.Redacted(), shown) {
		t.Errorf("read again:\n%+v, want\n%+v", again.Redacted(), shown)
	}
}

func TestRedactURL(t *testing.T) {
	for address, want := range map[string]string{
		"postgres://rider@host/db":                   "postgres://rider@host/db",
		"postgres://rider:x@host/db?sslmode=disable": "postgres://rider:***@host/db?sslmode=disable",
		"postgres://rider:a@b/c@host/db":             "postgres://rider:***@host/db",
		"postgres://host/db?user=r&password=x&a=b":   "postgres://host/db?user=r&password=***&a=b",
		"host=h user=r password=x dbname=d":          "host=h user=r password=*** dbname=d",
		"host=h password = 'a b' dbname=d":           "host=h password = *** dbname=d",
		"nats://s3cret@host:4222":                    "nats://***@host:4222",
		"amqps://u:p@host/vhost":                     "amqps://u:***@host/vhost",
		"nats://a:b@one:1,nats://a:b@two:2":          "nats://a:***@two:2",
		"kafka://one:9092,two:9092":                  "kafka://one:9092,two:9092",
		"https://hooks.example/x?token=abc&mail=a@b": "https://hooks.example/x?token=***&mail=a@b",
		"stdout:":         "stdout:",
		"redis://:x@host": "redis://:***@host",
	} {
		if got := RedactURL(address); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}
