package config

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const reconciled = good + `
reconcilers:
  enrollments:
    every: 1m
    query: |
      SELECT id, id AS aggregate_id FROM enrollments WHERE at >= $1 AND at < $2
    type: enrollment.confirmed
    dedup_key: "enrollment:{id}"
    again: 3
  received:
    cron: "*/5 8-18 * * mon-fri"
    zone: Europe/Berlin
    consumer: billing
    only: {types: ["order.*"]}
  held:
    destination: events
    grace: 10m
`

func TestReconcilers(t *testing.T) {
	f := mustParse(t, reconciled)
	p := f.Reconcilers["enrollments"]
	if p.Every != time.Minute || p.Again != 3 || p.DedupKey != "enrollment:{id}" || !strings.Contains(p.Query, "$2") {
		t.Errorf("%+v", p)
	}
	for name, want := range map[string]string{"enrollments": "every 1m0s", "received": "*/5 8-18 * * mon-fri Europe/Berlin", "held": "every 5m0s"} {
		s, err := f.Reconcilers[name].Schedule()
		if err != nil || s.String() != want {
			t.Errorf("%s: %v, %v", name, s, err)
		}
		if database, err := f.ReconcilerDatabase(f.Reconcilers[name]); database != "app" || err != nil {
			t.Errorf("%s: database %q, %v", name, database, err)
		}
	}
	if feed, err := f.ReconcilerFeed(f.Reconcilers["held"]); feed != "default" || err != nil {
		t.Errorf("feed %q, %v", feed, err)
	}
	shown, err := f.Redacted().YAML()
	if err != nil {
		t.Fatal(err)
	}
	again := mustParse(t, string(shown)) // it reads as a file, with the defaults said
	if held := again.Reconcilers["held"]; held.Window != 24*time.Hour || held.Feed != "default" || held.Every != defaultEvery || held.Batch != 100 {
		t.Errorf("shown %s", shown)
	}
	for _, text := range []string{reconciled, string(shown)} {
		if err := validateText(t, text); err != nil {
			t.Errorf("schema: %v in %s", err, text)
		}
	}
	if _, others := f.Changes(mustParse(t, strings.Replace(reconciled, "again: 3", "again: 4", 1))); len(others) != 1 || others[0] != "reconcilers.enrollments" {
		t.Errorf("changes %q", others)
	}
}

func TestReconcilerMistakes(t *testing.T) {
	for _, c := range []struct{ old, replacement, want string }{
		{"    destination: events\n    grace", "    grace", "reconcilers.held: what is it to look for?"},
		{"    consumer: billing", "    consumer: billing\n    destination: events", "reconcilers.received: query, consumer and destination contradict each other"},
		{"every: 1m", "every: 1m\n    cron: '* * * * *'", `reconcilers.enrollments.cron: every 1m0s and cron "* * * * *" contradict each other`},
		{"every: 1m", "every: 1", "reconcilers.enrollments.every: \"1\" has no unit"},
		{"mon-fri", "mon-fry", `reconcilers.received.cron: day of the week "mon-fry"`},
		{"Europe/Berlin", "Europe/Bärlin", "reconcilers.received.cron: zone"},
		{"grace: 10m", "grace: 24h", "reconcilers.held.window: window 24h0m0s and grace 24h0m0s contradict each other"},
		{"enrollment:{id}", "enrollment", "reconcilers.enrollments.dedup_key: dedup key"},
		{"grace: 10m", "type: x", "reconcilers.held.type: it means nothing together with destination"},
		{"grace: 10m", "only: {types: [x]}", "reconcilers.held.only: it means nothing together with destination"},
		{"grace: 10m", "feed: none", `reconcilers.held.feed: there is no feed "none"`},
		{"grace: 10m", "database: none", `reconcilers.held.database: there is no database "none"`},
		{"  held:\n    destination: events", "  held:\n    destination: evens", `reconcilers.held.destination: there is no destination "evens"`},
		{"consumer: billing", "consumer: billing\n    inbox: none", `reconcilers.received.inbox: there is no database "none"`},
		{"  held:", "  he ld:", `"he ld" is not a name`},
		{"again: 3", "agin: 3", `unknown key "agin"; did you mean "again"?`}, //nolint:misspell // as a user may
	} {
		text := strings.Replace(reconciled, c.old, c.replacement, 1)
		if text == reconciled {
			t.Fatalf("%q is not there", c.old)
		}
		_, err := parse(text)
		if err == nil || strings.Count(err.Error(), "\n") > 0 || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v", c.replacement, err)
		}
	}
}

// Reconcilers need the log: elsewhere the mistake is found here, and not by a relay that ends.
func TestReconcilersNeedTheLog(t *testing.T) {
	const text = `databases: {app: {url: host=h}, old: {url: "mysql://u@h/db"}}
destinations: {d: {url: 'discard:'}}
feeds: {default: {database: %s}}
reconcilers: {p: {consumer: billing%s}}
`
	for _, c := range []struct{ database, more, want string }{
		{"old", "", `reconcilers.p: its database "old" has the engine classic`},
		{"app", ", inbox: old", `reconcilers.p.inbox: the database "old" has the engine classic`},
	} {
		if _, err := parse(fmt.Sprintf(text, c.database, c.more)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}
