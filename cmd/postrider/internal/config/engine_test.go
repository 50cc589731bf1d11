package config

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

const classicFile = `databases:
  shop:
    url: mysql://rider:db-secret@host/shop
    table: outbox_events
    layout: events-bigserial
    columns: {headers: meta, routing_key: ""}
    order_by: [created_at, id]
    status: {pending: [pending, "new"], published: "yes"}
    default: {type: shop.event}
    wire_id: "outbox-{id}"
    shards: 16
    retention: 48h
destinations: {jobs: {url: fake://host}}
feeds: {default: {}}
`

func TestClassicDatabase(t *testing.T) {
	f := mustParse(t, classicFile)
	want := Database{URL: "mysql://rider:db-secret@host/shop", Table: Table{
		Name: "outbox_events", Preset: "events-bigserial", Columns: map[string]string{"headers": "meta", "routing_key": ""},
		OrderBy: []string{"created_at", "id"}, Status: map[string][]string{"pending": {"pending", "new"}, "published": {"yes"}},
		DefaultType: "shop.event", WireID: "outbox-{id}", Shards: 16, Retention: 48 * time.Hour,
	}}
	if got := f.Databases["shop"]; !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v, want\n%+v", got, want)
	}
	plan, err := f.Feed("default")
	if err != nil || plan.Database.EngineName() != EngineClassic || plan.Database.Schema != "" {
		t.Errorf("%+v, %v", plan, err)
	}
	shown, err := f.Redacted().YAML()
	if err != nil || strings.Contains(string(shown), "db-secret") {
		t.Errorf("%v\n%s", err, shown)
	}
	for _, text := range []string{classicFile, string(shown)} {
		if err := validateText(t, text); err != nil {
			t.Errorf("the schema refuses: %v\n%s", err, text)
		}
	}
	again, err := parse(strings.Replace(string(shown), "rider:***@", "rider:db-secret@", 1))
	if err != nil {
		t.Fatalf("%v\n%s", err, shown)
	}
	want.Engine = EngineClassic
	if got := again.Databases["shop"]; !reflect.DeepEqual(got, want) {
		t.Errorf("shown and read again\n%+v, want\n%+v", got, want)
	}
}

func TestEngines(t *testing.T) {
	for url, want := range map[string]string{
		"postgres://h/d": EngineLog, "host=h dbname=d": EngineLog, "mysql://h/d": EngineClassic, "mariadb://h/d": EngineClassic,
	} {
		if got := (Database{URL: url}).EngineName(); got != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
	}
	if got := (Database{URL: "postgres://h/d", Engine: EngineClassic}).EngineName(); got != EngineClassic {
		t.Error(got)
	}
}

// TestClassicMistakes finds all of them at once.
func TestClassicMistakes(t *testing.T) {
	_, err := parse(`databases:
  a: {url: mysql://h/d, engine: log}
  b: {url: postgres://h/d, table: t, columns: {id: id}}
  c: {url: mysql://h/d, table: t, columns: {tpye: x}, status: {published: [a, b]}, shards: 300}
  d: {url: mysql://h, engine: fast}
  e: {url: mysql://h/d, layout: prism, default: {type: x}}
  f: {url: mysql://h/d, wire_id: "{id}", order_by: id}
  g: {url: mysql://h/d, layout: prisma}
destinations: {jobs: {url: fake://host}}
feeds: {one: {database: g}, two: {database: g}}
`)
	var mistakes Mistakes
	if !errors.As(err, &mistakes) {
		t.Fatal(err)
	}
	for _, want := range []string{
		"2:33: databases.a.engine: the log needs PostgreSQL", "databases.b.columns: only the classic engine has it",
		"3:35: databases.b.table: only the classic engine has it", `unknown key "tpye"`,
		"databases.c.columns: the column id is missing", "databases.c.columns: the column payload is missing",
		"databases.c.columns: the column type is missing", "databases.c.shards: 300 is more than 256",
		"databases.c.status.published: want one word", "databases.d.url: the address names no database",
		`databases.d.engine: "fast" is not an engine`, `databases.e.layout: there is no layout "prism"`, "databases.f.order_by: of which table?",
		"databases.f.wire_id: of which table?", "feeds.two: the table of database g serves feed one already",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no mistake %q in\n%v", want, err)
		}
	}
	if len(mistakes) != 15 {
		t.Errorf("%d mistakes:\n%v", len(mistakes), err)
	}
}

// TestFeedsOfOneTable allows feeds whose filters exclude each other, and names both sides of two that do not: one of them would find
// rows marked as sent that it was to send.
func TestFeedsOfOneTable(t *testing.T) {
	const file = `databases: {shop: {url: mysql://h/d, layout: bento}, again: {url: mysql://h/d, layout: bento}}
destinations: {jobs: {url: fake://host}}
feeds: {acme: {database: shop, only: {tenants: [acme, "a-*"]}}, rest: {database: again, only: %s}}
`
	for only, wrong := range map[string]string{
		"{tenants: [zeta, b]}":                  "",
		"{tenants: [zeta], topics: [acme]}":     "",
		"{tenants: ['*']}":                      "feeds.acme.only and feeds.rest.only",
		"{tenants: [zeta, a-b]}":                "feeds.acme.only and feeds.rest.only",
		"{types: [order.placed], topics: ['']}": "feeds.acme.only and feeds.rest.only",
	} {
		_, err := parse(strings.Replace(file, "%s", only, 1))
		if (err != nil) != (wrong != "") || err != nil && !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: %v, want %q", only, err, wrong)
		}
	}
}
