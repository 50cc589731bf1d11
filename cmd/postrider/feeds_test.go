package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/pflag"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/discard"
	"github.com/postrider/postrider/config"
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
		`msg="relay: stopped" feed=all published=3`, `msg="relay: stopped" feed=work published=3`,
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

func TestRelayOfAFileNeedsTheSchema(t *testing.T) {
	t.Parallel()
	c := newCLI(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES15"))
	path := writeConfig(t, fmt.Sprintf("databases: {a: {url: %q, schema: %s}}\ndestinations: {d: {url: 'discard:'}}\nfeeds: {default: }\n", c.dsn, c.schema))
	r := offline(t, "relay", "--config", path)
	if r.code != exitSchema || !strings.Contains(r.err, "migrate up --schema "+c.schema) {
		t.Errorf("exit code %d\n%s", r.code, r.err)
	}
}

// candid is a publisher that answers the third question about its settings.
type candid struct {
	discard.Publisher
	asked int
	names []string
}

func (c *candid) Inspect(ctx context.Context, names []string) (postrider.Inspection, error) {
	c.names = names
	if c.asked++; c.asked == 1 {
		<-ctx.Done() // it hangs
		return postrider.Inspection{}, ctx.Err()
	}
	if c.asked == 2 {
		return postrider.Inspection{}, errors.New("down")
	}
	return postrider.Inspection{
		Confirmed: "On the disks of two servers.",
		Settings:  []postrider.Setting{{Name: "replicas", Value: "2"}},
		Warnings:  []postrider.Warning{{Danger: "it may burn", Remedy: "buy a hose"}},
	}, nil
}

func TestInspection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		pub := &candid{}
		start := time.Now()
		inspect(t.Context(), slog.New(slog.NewTextHandler(&log, nil)), openDestination{"d", pub, []string{"orders"}, &answers{}})
		if took := time.Since(start); took != inspectTimeout+3*inspectPause || pub.names[0] != "orders" {
			t.Errorf("it took %v", took)
		}
		for _, want := range []string{
			`level=INFO msg="relay: confirmed means" destination=d meaning="On the disks of two servers." settings="replicas=2"`,
			`level=WARN msg="relay: the destination needs attention" destination=d danger="it may burn" remedy="buy a hose"`,
		} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("nothing says %s in\n%s", want, &log)
			}
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		inspect(ended, slog.New(slog.DiscardHandler), openDestination{"d", &candid{}, nil, &answers{}})
		inspect(ended, slog.New(slog.DiscardHandler), openDestination{"d", discard.New(), nil, &answers{}})
	})
}
