package e2e_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/internal/port"
	"github.com/postrider/postrider/test/built"
	"github.com/postrider/postrider/test/said"
)

// bothFeeds are the feeds of every place.
var bothFeeds = []string{"default", "audit"}

// receiver is the common destination of all relays of a test: it counts what each of them sends.
type receiver struct {
	address string

	mu  sync.Mutex
	got map[string]map[string]int // by place and feed: number of receipts of each message
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{got: map[string]map[string]int{}}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.got[req.URL.Path] == nil {
			r.got[req.URL.Path] = map[string]int{}
		}
		r.got[req.URL.Path][req.Header.Get("webhook-id")]++
	}))
	t.Cleanup(server.Close)
	r.address = server.URL
	return r
}

// from returns the number of receipts of each message from a feed of a place.
func (r *receiver) from(place, feed string) map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.got["/"+place+"/"+feed])
}

// place is a database with the configuration of its relays.
type place struct {
	t      *testing.T
	name   string
	dsn    string
	home   string
	to     *receiver
	config string              // file
	health string              // address
	expect map[string][]string // by feed: the messages that its relays must send
}

// placeOf configures relays for a database, with a home, as an operator would.
func placeOf(t *testing.T, to *receiver, name, dsn, home string) *place {
	t.Helper()
	p := &place{t: t, name: name, dsn: dsn, home: home, to: to, health: port.For(t), expect: map[string][]string{}}
	p.config = filepath.Join(t.TempDir(), "postrider.yaml")
	text := fmt.Sprintf("databases:\n  app: {url: %q, home: %q}\nhealth: {listen: %q}\ndestinations:\n", dsn, home, p.health)
	if home == "" {
		text = strings.Replace(text, `, home: ""`, "", 1)
	}
	for _, feed := range bothFeeds {
		text += fmt.Sprintf("  %s: {url: %q, allow_loopback: true}\n", feed, to.address+"/"+name+"/"+feed)
	}
	text += "feeds:\n"
	for _, feed := range bothFeeds {
		text += fmt.Sprintf("  %s: {destination: %s, create: oldest, relay: {balance_interval: 100ms, poll_max: 50ms, outage: {most: 200ms}}}\n", feed, feed)
	}
	if err := os.WriteFile(p.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *place) database() string {
	name, _, _ := strings.Cut(p.dsn[strings.LastIndex(p.dsn, "/")+1:], "?")
	return name
}

// postrider runs the command with the place's configuration, and returns its output and exit code.
func (p *place) postrider(args ...string) (out string, code int) {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), built.Program(p.t, "cmd/postrider"), append(args, "--database", "app")...)
	cmd.Env = append(os.Environ(), "POSTRIDER_CONFIG="+p.config)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	text, err := cmd.Output()
	if code = cmd.ProcessState.ExitCode(); err != nil && code != 1 {
		p.t.Fatalf("%s: postrider %s: %v\n%s", p.name, strings.Join(args, " "), err, complaints.String())
	}
	return string(text) + complaints.String(), code
}

// must runs a command that must succeed.
func (p *place) must(args ...string) string {
	p.t.Helper()
	out, code := p.postrider(args...)
	if code != 0 {
		p.t.Fatalf("%s: postrider %s: exit code %d\n%s", p.name, strings.Join(args, " "), code, out)
	}
	return out
}

// relay starts a relay for feeds and returns a function that stops it.
func (p *place) relay(feeds ...string) (stop func()) {
	p.t.Helper()
	cmd := exec.Command(built.Program(p.t, "cmd/postrider"), "relay", "--config", p.config, "--feed", strings.Join(feeds, ","))
	log := new(said.Buffer)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			p.t.Errorf("the relay of %s: %v", p.name, err)
		}
	})
	p.t.Cleanup(func() {
		stop()
		if p.t.Failed() {
			p.t.Logf("the relay of %s said:\n%s", p.name, log.String())
		}
	})
	return stop
}

// enqueue commits messages, each with its own key, which feeds must send from this place.
func (p *place) enqueue(n int, feeds ...string) []string {
	p.t.Helper()
	conn, err := pgx.Connect(p.t.Context(), p.dsn)
	if err != nil {
		p.t.Fatal(err)
	}
	defer conn.Close(p.t.Context())
	rows, err := conn.Query(p.t.Context(), "SELECT postrider.enqueue('order.placed', 'order', i::text, '{}'::json)::text FROM generate_series(1, $1::int) i", n)
	if err != nil {
		p.t.Fatal(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		p.t.Fatal(err)
	}
	p.expects(ids, feeds...)
	return ids
}

// expects records that messages must be sent from this place.
func (p *place) expects(ids []string, feeds ...string) {
	for _, feed := range feeds {
		p.expect[feed] = append(p.expect[feed], ids...)
	}
}

// mustSend waits until everything expected has been sent from this place, and checks that it was
// sent once, and nothing else.
func (p *place) mustSend() {
	p.t.Helper()
	for _, feed := range bothFeeds {
		want := slices.Sorted(slices.Values(p.expect[feed]))
		waitFor(p.t, fmt.Sprintf("%s sends %d messages of %s", p.name, len(want), feed), func() error {
			got := p.to.from(p.name, feed)
			for _, id := range want {
				if got[id] == 0 {
					return fmt.Errorf("%d have come, not %s", len(got), id)
				}
			}
			return nil
		})
		got := p.to.from(p.name, feed)
		if !slices.Equal(slices.Sorted(maps.Keys(got)), want) {
			p.t.Errorf("%s has sent %d messages of %s, want %d", p.name, len(got), feed, len(want))
		}
		for id, times := range got {
			if times != 1 {
				p.t.Errorf("%s has sent %s of %s %d times", p.name, id, feed, times)
			}
		}
	}
}

// tries returns how often the relay has asked for shards.
func (p *place) tries() (n int, err error) {
	resp, err := http.Get("http://" + p.health + "/metrics")
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if name, value, _ := strings.Cut(lines.Text(), "} "); strings.HasPrefix(name, "postrider_store_calls_total") && strings.Contains(name, `"balance"`) {
			tries, err := strconv.Atoi(value)
			if err != nil {
				return 0, err
			}
			n += tries
		}
	}
	return n, nil
}

// mustWait checks that a relay keeps trying, sends nothing, and reports the reason, the database,
// and the command to run.
func (p *place) mustWait() {
	p.t.Helper()
	waitFor(p.t, "the relay of "+p.name+" waits", func() error {
		var state struct {
			Feeds []struct{ Feed, Paused string }
		}
		if err := getJSON("http://"+p.health+"/readyz?verbose", &state); err != nil {
			return err
		}
		for _, f := range state.Feeds {
			if !strings.Contains(f.Paused, `"`+p.database()+`"`) || !strings.Contains(f.Paused, "postrider rebase") {
				return fmt.Errorf("feed %s: %q", f.Feed, f.Paused)
			}
		}
		tries, err := p.tries()
		if err == nil && (len(state.Feeds) != len(bothFeeds) || tries < 5*len(bothFeeds)) {
			err = fmt.Errorf("%d feeds, %d tries", len(state.Feeds), tries)
		}
		return err
	})
	if p.home != "" { // the command would only wait for another home, and the relay asks for one
		out, code := p.postrider("status")
		if code != 1 || !strings.Contains(out, "relays pause") || !strings.Contains(out, "postrider rebase --dry-run") {
			p.t.Errorf("%s: status ends with %d:\n%s", p.name, code, out)
		}
	}
	p.mustBeSilent()
}

// mustBeSilent checks that nothing was sent from this place.
func (p *place) mustBeSilent() {
	p.t.Helper()
	for _, feed := range bothFeeds {
		if got := p.to.from(p.name, feed); len(got) > 0 {
			p.t.Errorf("%s has sent %d messages of %s", p.name, len(got), feed)
		}
	}
}

// rebase makes the place the home of its messages, and first checks the announcement of what its
// relays then send.
func (p *place) rebase() {
	p.t.Helper()
	want := map[string]int{}
	for _, feed := range bothFeeds {
		want[feed] = len(p.expect[feed])
	}
	announced := func(args ...string) map[string]int {
		p.t.Helper()
		out, code := p.postrider(append([]string{"rebase", "--json"}, args...)...)
		var answer struct {
			Foreign bool
			Feeds   []struct {
				Feed      string
				Unsettled int
			}
		}
		if err := json.Unmarshal([]byte(out), &answer); err != nil || code != 0 || !answer.Foreign {
			p.t.Fatalf("%s: rebase %v: %v, exit code %d\n%s", p.name, args, err, code, out)
		}
		feeds := map[string]int{}
		for _, f := range answer.Feeds {
			feeds[f.Feed] = f.Unsettled
		}
		return feeds
	}
	if plan := announced("--dry-run"); !maps.Equal(plan, want) {
		p.t.Errorf("%s: rebase announces %v, want %v", p.name, plan, want)
	}
	p.mustBeSilent()
	if done := announced("--yes", "--reason", "a test"); !maps.Equal(done, want) {
		p.t.Errorf("%s: rebase keeps %v, want %v", p.name, done, want)
	}
	if records := p.must("audit", "ls", "--json"); !strings.Contains(records, `"action":"rebase","why":"a test"`) {
		p.t.Errorf("%s: nothing is recorded: %s", p.name, records)
	}
	p.t.Logf("%s: announced %v", p.name, want)
}

func getJSON(url string, value any) error {
	resp, err := http.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return json.NewDecoder(resp.Body).Decode(value)
}

// waitFor polls ask until it returns no error, for at most half a minute.
func waitFor(t *testing.T, what string, ask func() error) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ask()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not after 30 s: %v", what, err)
		}
		<-tick.C
	}
}
