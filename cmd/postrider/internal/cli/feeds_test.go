package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// TestRelayServesAFile carries two feeds of one database, of which the second renames messages and drops some.
func TestRelayServesAFile(t *testing.T) {
	t.Parallel()
	c := newCLI(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES15"))
	c.must("migrate", "up")
	c.exec("SELECT @schema@.enqueue('document_uploaded', 'document', '1', '{}')")
	c.exec("SELECT @schema@.enqueue('debug.trace', 'document', '2', '{}')")
	c.exec("SELECT @schema@.enqueue('payment_completed', 'payment', '3', '{}')")
	path := writeConfig(t, fmt.Sprintf(`databases:
  app: {url: %q, schema: %s}
destinations:
  screen: {url: "stdout:"}
  nowhere: {url: "discard:"}
feeds:
  all:
    destination: nowhere
    create: oldest
  work:
    destination: screen
    create: oldest
    only: {types: [document_*, debug.*, payment_*]}
    routes:
      - {types: [document_uploaded], name: verify_document}
      - {types: [debug.*], drop: true}
      - {types: [payment_completed], name: send_email}
`, c.dsn, c.schema))

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, messages := &watched{text: never}, &watched{text: never}
	arrived := make(chan struct{})
	out.text, out.seen = "send_email", func() { close(arrived) }
	carried := make(chan struct{})
	go func() {
		defer close(carried)
		<-arrived
		// Everything has been settled when a new reader of the ledger says so.
		for ctx.Err() == nil {
			var left int
			err := c.pool.QueryRow(ctx, "SELECT count(*) FROM "+c.schema+".message_status WHERE status = 'pending'").Scan(&left)
			if err == nil && left == 0 {
				break
			}
		}
		cancel()
	}()
	code := execute(ctx, streams{in: strings.NewReader(""), out: out, err: messages}, []string{"relay", "--config", path})
	cancel()
	<-carried
	if code != exitOK {
		t.Fatalf("exit code %d\n%s", code, messages)
	}
	topics := make(map[string]string)
	for line := range strings.Lines(out.String()) {
		var m struct{ Type, Topic string }
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		topics[m.Type] = m.Topic
	}
	if len(topics) != 2 || topics["document_uploaded"] != "verify_document" || topics["payment_completed"] != "send_email" {
		t.Errorf("topics %v", topics)
	}
	for _, want := range []string{
		`msg="relay: started" feed=all to=nowhere`, `msg="relay: started" feed=work to=screen`,
		`msg="relay: stopped" feed=all published=3`, `msg="relay: stopped" feed=work published=2`,
	} {
		if !strings.Contains(messages.String(), want) {
			t.Errorf("nothing says %s in\n%s", want, messages)
		}
	}
}

func TestRelayOfAFileReportsMistakesAtTheStart(t *testing.T) {
	t.Parallel()
	path := writeConfig(t, smallConfig)
	r := offline(t, "relay", "--config", path, "--feed", "default,other,third")
	if r.code != exitUsage || !strings.Contains(r.err, `no feed "other"`) || !strings.Contains(r.err, `no feed "third"`) {
		t.Errorf("exit code %d\n%s", r.code, r.err)
	}
	path = writeConfig(t, strings.Replace(smallConfig, `screen: {url: "stdout:"}`, `screen: {url: "stdout:", format: raw}`, 1))
	r = offline(t, "relay", "--config", path)
	if r.code != exitUsage || !strings.Contains(r.err, "destinations.screen: stdout: format") {
		t.Errorf("exit code %d\n%s", r.code, r.err)
	}
}

// TestFlagsAndFileHaveTheSameDefaults compares the flags with a file that says nothing.
func TestFlagsAndFileHaveTheSameDefaults(t *testing.T) {
	t.Parallel()
	var o relayOptions
	o.addFlags(pflag.NewFlagSet("", pflag.ContinueOnError))
	text := "databases: {a: {url: host=h}}\ndestinations: {d: {url: 'discard:'}}\nfeeds: {default: }\n"
	f, err := config.Parse("p.yaml", []byte(text), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := f.Feed("default")
	if err != nil {
		t.Fatal(err)
	}
	o.Feed, o.Destination = "default", plan.Relay.Destination // which --to says
	if !reflect.DeepEqual(o.Config, plan.Relay) {
		t.Errorf("flags\n%+v, file\n%+v", o.Config, plan.Relay)
	}
}

// TestRelayWaitsForTables holds that a daemon carries what it can: a database whose tables are missing keeps no other from being served, the
// command that lays them out names it, and it is served as soon as that was run.
func TestRelayWaitsForTables(t *testing.T) {
	ready, missing := newCLI(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES15")), newCLI(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"))
	ready.must("migrate", "up")
	ready.enqueue(1)
	path := writeConfig(t, fmt.Sprintf(`databases:
  ready: {url: %q, schema: %s}
  missing: {url: %q, schema: %s}
health: {listen: "127.0.0.1:0"}
destinations: {d: {url: 'stdout:'}}
feeds:
  default: {database: ready, destination: d}
  other: {database: missing, destination: d}
`, ready.dsn, ready.schema, missing.dsn, missing.schema))
	r := startRelay(t, "--config", path)
	r.until("the other database is served", func() bool { return strings.Count(r.out.String(), "\n") == 1 })
	const command = "postrider migrate up --database missing"
	r.until("the log names the database", func() bool { return strings.Contains(r.err.String(), command) })
	_, report := ask(t, r.address()+"/readyz?verbose", "")
	if !strings.Contains(report, command) {
		t.Errorf("readiness does not name the command:\n%s", report)
	}
	missing.must("migrate", "up")
	missing.enqueue(1)
	r.until("it is served without a restart", func() bool { return strings.Count(r.out.String(), "\n") == 2 })
	r.end()
}
