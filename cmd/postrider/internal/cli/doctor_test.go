package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/postrider/postrider/cmd/postrider/internal/doctor"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// TestDoctor goes from a database without tables, by way of one without relays, to one in which all is well.
func TestDoctor(t *testing.T) {
	t.Parallel()
	c := newCLI(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES15"))
	r := c.run("doctor")
	if r.code != 2 || !strings.HasPrefix(r.out, "problem  schema: ") || !strings.Contains(r.out, "fix: postrider migrate up --schema "+c.schema) {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
	c.must("migrate", "up")
	r = c.run("doctor")
	if r.code != 1 || !strings.Contains(r.out, "warning  feeds: there is no feed") || strings.Contains(r.out, "ok  ") || strings.Contains(r.err, "--help") {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
	c.exec("SELECT @schema@.open_feed('default')")
	c.exec("SELECT @schema@.balance('default', gen_random_uuid(), 'test', '10 minutes')")
	if out := c.must("doctor", "--verbose"); !strings.Contains(out, "ok       feeds: ") || !strings.Contains(out, "no problems found") {
		t.Error(out)
	}
	var d diagnosis
	if err := json.Unmarshal([]byte(c.must("doctor", "--json")), &d); err != nil || d.Problems+d.Warnings != 0 {
		t.Errorf("%v: %+v", err, d)
	}
	for _, f := range d.Findings {
		if f.Severity != doctor.Info { // such as the roles, which were not asked for
			t.Errorf("found %+v", f)
		}
	}
}

// TestDoctorOfAFile examines databases and brokers of a file, of which some are down.
func TestDoctorOfAFile(t *testing.T) {
	t.Parallel()
	c := newCLI(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES15"))
	c.must("migrate", "up")
	path := writeConfig(t, fmt.Sprintf(`databases:
  app: {url: %q, schema: %s}
  gone: {url: "postgres://rider:hidden-secret@127.0.0.1:1/db?sslmode=disable"}
destinations:
  events: {url: "nats://127.0.0.1:1"}
  spare: {url: "discard:"}
feeds:
  default: {database: app, destination: events}
`, c.dsn, c.schema))
	r := offline(t, "doctor", "--config", path, "--json")
	var d diagnosis
	if err := json.Unmarshal([]byte(r.out), &d); err != nil || r.code != 2 || strings.Contains(r.out+r.err, "hidden-secret") {
		t.Fatalf("exit code %d, %v\n%s%s", r.code, err, r.out, r.err)
	}
	found := map[string]string{}
	for _, f := range d.Findings {
		found[f.Subject+" "+f.Check] = string(f.Severity) + ": " + f.Finding
	}
	for what, want := range map[string]string{
		"gone connection": "problem: ", "events broker": "problem: ", "app feeds": "warning: the feed default is in the file", path + " file": "warning: ",
	} {
		if !strings.HasPrefix(found[what], want) {
			t.Errorf("%s: %q, want %q", what, found[what], want)
		}
	}
	if r := c.run("doctor", "--config", path); r.code != exitUsage || !strings.Contains(r.err, "contradict") {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
	if r := offline(t, "doctor", "--config", path+".missing"); r.code != exitUsage {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
}
