package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/postrider/postrider/store/postgres/pgtest"
)

// TestReloadOnSignal changes the routes of a process under load: every message arrives, under its old name or its new one.
func TestReloadOnSignal(t *testing.T) {
	t.Parallel()
	c := newCLI(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES15"))
	c.must("migrate", "up")
	text := fmt.Sprintf(`databases: {app: {url: %q, schema: %s}}
destinations: {screen: {url: "stdout:"}, spare: {url: "discard:"}}
feeds:
  default:
    destination: screen
    relay: {batch: 10}
    routes:
      - {types: [test.*], name: first}
`, c.dsn, c.schema)
	path := writeConfig(t, text)
	messages := &watched{text: never}
	cmd, out := startCommand(t, messages, "relay", "--config", path)
	arrived := make(map[int]string) // topics by number
	lines := bufio.NewScanner(out)
	read := func(topic string) {
		t.Helper()
		for lines.Scan() {
			var m struct {
				Topic   string
				Payload struct{ N int }
			}
			if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
				t.Fatal(err)
			}
			arrived[m.Payload.N] = m.Topic
			if m.Topic == topic {
				return
			}
		}
		t.Fatalf("the relay has ended\n%s", messages)
	}
	reload := func(text, says string) {
		t.Helper()
		before := strings.Count(messages.String(), says)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		signalTo(t, cmd, syscall.SIGHUP)
		eventually(t, says, func() bool { return strings.Count(messages.String(), says) > before }, messages.String)
	}

	c.enqueue(2000)
	read("first")
	second := strings.Replace(text, "name: first", "name: second", 1)
	reload(second, `msg="relay: reloaded" file=`+path+` "new routes"=default`)
	c.exec(`SELECT @schema@.enqueue('test.happened', 'test', '1', json_build_object('n', n)) FROM generate_series(2001, 4000) n`)
	read("second")
	for len(arrived) < 4000 {
		read("second")
	}
	if arrived[1] != "first" || arrived[4000] != "second" {
		t.Errorf("the first went to %q, the last to %q", arrived[1], arrived[4000])
	}

	// What only a restart can change, and what is wrong, leaves everything as it is.
	reload(strings.Replace(strings.Replace(second, "batch: 10", "batch: 20", 1), "name: second", "name: third", 1),
		`because="a restart is needed for feeds.default"`)
	reload(strings.Replace(second, "types: [test.*]", "tpyes: [test.*]", 1), `path=feeds.default.routes[0].tpyes mistake="unknown key`)
	reload("feeds: [", "this is not YAML")
	c.exec(`SELECT @schema@.enqueue('test.happened', 'test', '1', '{"n": 4001}')`)
	for arrived[4001] == "" {
		read("second")
	}

	// A destination that was not in use is opened, and messages that waited for a route go on.
	c.exec(`SELECT @schema@.enqueue('other', 'other', '2', '{"n": 4002}')`)
	eventually(t, "waiting", func() bool { return strings.Contains(messages.String(), "no rule matches") }, messages.String)
	reload(second+"      - {types: [dull], destination: spare}\n      - {types: [other], name: third}\n", `"new routes"=default`)
	read("third")
	signalTo(t, cmd, syscall.SIGTERM)
	if code := waitForCode(t, cmd); code != exitOK || arrived[4002] != "third" {
		t.Errorf("exit code %d\n%s", code, messages)
	}
}
