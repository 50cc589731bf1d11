package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/postrider/postrider/internal/port"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// TestPrintedCommands runs every command that the console, status, doctor and errors print about one database of two, as it is printed. The
// other database, and the one that commands use by default, cannot be reached: a command that does not name its database cannot succeed.
// Whatever asks before it acts is asked for a dry run.
func TestPrintedCommands(t *testing.T) {
	c := newCLI(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"))
	c.must("migrate", "up")
	c.must("feeds", "add", "default", "--oldest")
	c.must("feeds", "add", "idle", "--oldest")
	c.must("feeds", "pause", "idle", "--reason", "a test")
	for n := range 6 {
		c.must("enqueue", "order.placed", "--aggregate", fmt.Sprintf("order/%d", n%3), "--payload", "{}")
	}
	if err := (&script{c.pool, c.schema}).carry("default", 3); err != nil {
		t.Fatal(err)
	}
	nobody := "postgres://nobody@" + port.For(t) + "/nothing?sslmode=disable&connect_timeout=2"
	path := writeConfig(t, fmt.Sprintf("databases:\n  first: {url: %q}\n  second: {url: %q, schema: %s}\ndestinations: {d: {url: 'discard:'}}\n"+
		"feeds: {default: {database: second}}\n", nobody, c.dsn, c.schema))
	t.Setenv("POSTRIDER_CONFIG", path)
	t.Setenv("DATABASE_URL", nobody)

	printed := map[string]string{} // by the command: who has printed it
	note := func(who, text string) {
		for _, line := range commandLines(text) {
			if printed[line] == "" {
				printed[line] = who
			}
		}
	}
	for _, line := range []string{"status --json", "doctor --json", "dead ls", "dead show 01900000-0000-7000-8000-000000000000", "feeds ls",
		"keys blocked --json", "messages show 01900000-0000-7000-8000-000000000000", "feeds pause nope --reason x", "replay ls", "rebase --dry-run",
		"saga show nope"} {
		r := c.on("second", strings.Fields(line)...)
		note("postrider "+line, r.out+"\n"+r.err)
	}
	ask := c.console(t)
	for _, path := range []string{"overview", "feeds", "feeds/default", "feeds/idle", "relays", "messages", "dead", "dead/groups", "keys", "consumers", "doctor",
		"databases", "audit", "replays"} {
		note("GET "+path, ask("GET", path, nil))
	}
	id, key := c.aDeadLetter()
	note("GET messages/ID", ask("GET", "messages/"+id, nil))
	of := map[string]any{"feed": "default", "id": id}
	for path, body := range map[string]map[string]any{
		"dead/act":             {"act": "retry", "filter": of},
		"dead/act?discard":     {"act": "discard", "filter": of},
		"dead/act?park":        {"act": "park", "filter": of},
		"dead/act?all":         {"act": "retry", "filter": map[string]any{"feed": "default", "type": "order.placed"}},
		"keys/act":             {"act": "skip", "feed": "default", "key": key},
		"feeds/default/rewind": {"time": "2020-01-01T00:00:00Z"},
	} {
		path, _, _ = strings.Cut(path, "?")
		body["why"], body["dry_run"] = "it's a test", true
		note("POST "+path, ask("POST", path, body))
	}
	if len(printed) < 15 {
		t.Errorf("only %d commands were printed", len(printed))
	}
	for _, line := range slices.Sorted(maps.Keys(printed)) {
		c.tryPrinted(line, printed[line])
	}
}

// aDeadLetter returns the ID and the key of one.
func (c *cli) aDeadLetter() (id, key string) {
	c.t.Helper()
	var dead []struct {
		ID  string `json:"id"`
		Key string `json:"key"`
	}
	if err := json.Unmarshal([]byte(c.must("dead", "ls", "--json")), &dead); err != nil || len(dead) == 0 {
		c.t.Fatalf("there are no dead letters: %v", err)
	}
	return dead[0].ID, dead[0].Key
}

// on runs a command on a database of the file.
func (c *cli) on(database string, args ...string) result {
	c.t.Helper()
	var out, messages bytes.Buffer
	code := execute(c.t.Context(), streams{in: strings.NewReader(""), out: &out, err: &messages}, append(args, "--database", database))
	return result{code, out.String(), messages.String()}
}

// console starts one over all databases of the file, and returns how to ask it about "second".
func (c *cli) console(t *testing.T) func(method, path string, body any) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	messages := &watched{text: never}
	address := port.For(t)
	go func() {
		ended <- execute(ctx, streams{in: strings.NewReader(""), out: io.Discard, err: messages}, []string{"console", "--listen", address})
	}()
	t.Cleanup(func() { cancel(); <-ended })
	eventually(t, "the console", func() bool { return strings.Contains(messages.String(), "the console is at") }, messages.String)
	return func(method, path string, body any) string {
		t.Helper()
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+address+"/api/v1/"+path+"?db=second", bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		all, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%s %s: %d %v %s", method, path, answer.StatusCode, err, all)
		}
		return string(all)
	}
}

var jsonText = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// commandLines are the commands in a text: values of JSON that begin with one, and the rest of lines behind ": ".
func commandLines(text string) (lines []string) {
	for _, quoted := range jsonText.FindAllString(text, -1) {
		var value string
		if json.Unmarshal([]byte(quoted), &value) == nil && strings.HasPrefix(value, "postrider ") {
			lines = append(lines, value)
		}
	}
	for line := range strings.Lines(text) {
		if _, command, ok := strings.Cut(strings.TrimSpace(line), ": postrider "); ok && !strings.HasPrefix(strings.TrimSpace(line), "{") {
			lines = append(lines, "postrider "+command)
		}
	}
	return lines
}

var placeholder = regexp.MustCompile(`(^|[ =])[A-Z]{2,}\b`) // such as FILE

// tryPrinted runs a command line as a shell would.
func (c *cli) tryPrinted(line, who string) {
	c.t.Helper()
	if placeholder.MatchString(line) || strings.HasPrefix(line, "postrider relay") || strings.Contains(line, "--database first") {
		return // to be filled in, or would not end, or is about the other
	}
	if strings.Contains(line, "--yes") {
		c.t.Errorf("%s prints a command that says yes: %s", who, line)
	}
	words, err := exec.CommandContext(c.t.Context(), "sh", "-c", `set -- `+strings.TrimPrefix(line, "postrider ")+`; printf '%s\0' "$@"`).Output()
	if err != nil {
		c.t.Errorf("%s prints what no shell understands: %s: %v", who, line, err)
		return
	}
	args := strings.Split(strings.TrimSuffix(string(words), "\x00"), "\x00")
	var out, messages bytes.Buffer
	run := func(more ...string) int {
		out.Reset()
		messages.Reset()
		return execute(c.t.Context(), streams{in: strings.NewReader(""), out: &out, err: &messages}, append(slices.Clone(args), more...))
	}
	code := run("--dry-run")
	if strings.Contains(messages.String(), "unknown flag: --dry-run") {
		code = run()
	}
	if code != exitOK && code != exitFailure && args[0] != "doctor" || strings.Contains(messages.String(), "nobody") {
		c.t.Errorf("%s prints %s, which ends with exit code %d:\n%s%s", who, line, code, out.String(), messages.String())
	}
}
