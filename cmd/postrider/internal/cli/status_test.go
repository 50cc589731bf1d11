package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/postrider/postrider/store/postgres/pgtest"
)

// TestStatusOfAStoppedRelay: a relay process that the system has stopped looks well from outside. Canaries tell.
func TestStatusOfAStoppedRelay(t *testing.T) {
	t.Parallel()
	c := newCLI(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"))
	c.must("migrate", "up")
	cmd, _ := startCommand(t, &watched{text: never}, "relay", "--to", "discard:", "--dsn", c.dsn, "--schema", c.schema, "--canary", "1s",
		"--lease", "2m")
	waitFor := func(within time.Duration, what string, cond func(status string) bool) time.Duration {
		t.Helper()
		begin := time.Now()
		for {
			r := c.run("status", "--json")
			if cond(r.out) {
				return time.Since(begin)
			}
			if time.Since(begin) > within {
				t.Fatalf("waited %v in vain until %s:\n%s", within, what, r.out)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	waitFor(30*time.Second, "all is well", func(s string) bool {
		return strings.Contains(s, `"canary":`) && strings.Contains(s, `"healthy":true`)
	})
	signalTo(t, cmd, syscall.SIGSTOP)
	took := waitFor(15*time.Second, "status says that the feed stands", func(s string) bool { return strings.Contains(s, `"stalled"`) })
	t.Logf("told after %v", took.Round(100*time.Millisecond))
	signalTo(t, cmd, syscall.SIGCONT)
	waitFor(15*time.Second, "all is well again", func(s string) bool { return strings.Contains(s, `"healthy":true`) })
	signalTo(t, cmd, syscall.SIGTERM)
	if code := waitForCode(t, cmd); code != exitOK {
		t.Errorf("exit code %d", code)
	}
}

// TestStatusOfADestination: the database says why a feed does not get on, wherever its relay runs.
func TestStatusOfADestination(t *testing.T) {
	t.Parallel()
	c := newCLI(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"))
	c.must("migrate", "up")
	c.must("feeds", "add", "default")
	report := func(names, failures, causes string) {
		c.exec("SELECT @schema@.report('default', $1::text[], $2::bigint[], $3::text[])", names, failures, causes)
	}
	report(`{orders,payments,""}`, "{3,2,1}", "{queue is full,x,\"connection\nrefused\"}")
	report("{payments}", "{0}", `{""}`)
	type problem struct {
		Kind, Text, Next, Name, Cause string
		Since                         time.Time
		Failures                      int
	}
	var status struct {
		Healthy bool
		Feeds   []struct{ Problems []problem }
	}
	r := c.run("status", "--json")
	if err := json.Unmarshal([]byte(r.out), &status); err != nil || status.Healthy || len(status.Feeds) != 1 {
		t.Fatalf("status says %s, and %v", r.out, err)
	}
	found := make(map[string]problem)
	for _, p := range status.Feeds[0].Problems {
		if p.Kind == "destination" {
			found[p.Name] = p
		}
	}
	orders := found["orders"]
	if len(found) != 2 || orders.Failures != 3 || orders.Cause != "queue is full" || time.Since(orders.Since) > time.Minute ||
		!strings.Contains(orders.Text, `"orders" has accepted nothing`) || !strings.Contains(orders.Next, "messages ls --status held --feed default") {
		t.Errorf("the problems are %+v", found)
	}
	if all, ok := found[""]; !ok || strings.Contains(all.Next, "held") {
		t.Errorf("of the destination as a whole, for which nothing is held, it says %+v", all)
	}
	for _, command := range []string{"status", "doctor"} {
		r := c.run(command)
		if r.code == exitOK || !strings.Contains(r.out, "queue is full") || !strings.Contains(r.out, "connection refused") || strings.Contains(r.out, "payments") {
			t.Errorf("%s ends with %d:\n%s", command, r.code, r.out)
		}
	}
	c.run("messages", "ls", "--status", "held", "--feed", "default")
	report(`{orders,""}`, "{0,0}", `{"",""}`)
	if r := c.run("status"); strings.Contains(r.out, "queue is full") {
		t.Errorf("it is over, and status says\n%s", r.out)
	}
}

// TestStatusOfAll has a file with a database that answers and one that does not: the one hides nothing of the other.
func TestStatusOfAll(t *testing.T) {
	c := newCLI(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"))
	c.must("migrate", "up")
	c.must("feeds", "add", "orders")
	file := filepath.Join(t.TempDir(), "postrider.yaml")
	text := fmt.Sprintf("databases:\n  bad: {url: 'postgres://ann:secret@127.0.0.1:1/x'}\n  good: {url: %q, schema: %s}\n"+
		"destinations: {events: {url: 'discard:'}}\nfeeds: {orders: {database: good}}\n", c.dsn, c.schema)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("POSTRIDER_CONFIG", file)
	run := func(args ...string) result {
		var out, messages bytes.Buffer
		code := execute(t.Context(), streams{in: strings.NewReader(""), out: &out, err: &messages}, append([]string{"status", "--all"}, args...))
		return result{code, out.String(), messages.String()}
	}
	r := run("--json")
	var all []overall
	if err := json.Unmarshal([]byte(r.out), &all); err != nil || r.code != exitFailure || len(all) != 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	bad, good := all[0], all[1]
	if bad.Database != "bad" || bad.Healthy || len(bad.Problems) != 1 || bad.Problems[0].Kind != "unreachable" || bad.Problems[0].Next == "" {
		t.Errorf("%+v", bad)
	}
	if good.Database != "good" || good.Healthy || len(good.Feeds) != 1 || len(good.Feeds[0].Problems) != 1 ||
		!strings.HasSuffix(good.Feeds[0].Problems[0].Next, " --database good") {
		t.Errorf("%+v", good)
	}
	if r := run(); r.code != exitFailure || !strings.Contains(r.out, "database bad, schema postrider: needs attention") ||
		!strings.Contains(r.out, "database good, schema "+c.schema+": needs attention") || strings.Contains(r.out+r.err, "secret") {
		t.Errorf("%+v", r)
	}
	if r := run("--database", "good"); r.code != exitUsage || !strings.Contains(r.err, "--all and --database contradict each other") {
		t.Errorf("%+v", r)
	}
}
