package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/discard"
	"github.com/postrider/postrider/broker/memory"
	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// running is a "postrider relay" in this process.
type running struct {
	t        *testing.T
	out, err *watched
	stop     context.CancelFunc
	code     chan int
}

func startRelay(t *testing.T, args ...string) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{t, &watched{text: never}, &watched{text: never}, cancel, make(chan int, 1)}
	go func() {
		r.code <- execute(ctx, streams{in: strings.NewReader(""), out: r.out, err: r.err}, append([]string{"relay"}, args...))
	}()
	t.Cleanup(cancel)
	return r
}

// until polls for a condition.
func (r *running) until(what string, ok func() bool) {
	r.t.Helper()
	eventually(r.t, what, ok, func() string { return r.err.String() })
}

func eventually(t *testing.T, what string, ok func() bool, log func() string) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s: never\n%s", what, log())
		}
	}
}

// end stops the relay as a signal would.
func (r *running) end() {
	r.t.Helper()
	r.stop()
	if code := <-r.code; code != exitOK {
		r.t.Errorf("exit code %d\n%s", code, r.err)
	}
}

var healthAddress = regexp.MustCompile(`msg="relay: health" listen=(\S+)`)

func (r *running) address() string {
	r.t.Helper()
	var found []string
	r.until("listening", func() bool {
		found = healthAddress.FindStringSubmatch(r.err.String())
		return found != nil
	})
	return "http://" + found[1]
}

func ask(t *testing.T, url, token string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

func TestHealthOfARelay(t *testing.T) {
	t.Parallel()
	c := newCLI(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES15"))
	c.must("migrate", "up")
	path := writeConfig(t, fmt.Sprintf(`databases: {app: {url: %q, schema: %s}}
destinations: {good: {url: "discard:"}, down: {url: "nats://127.0.0.1:1"}}
feeds: {good: {destination: good, create: oldest}, down: {destination: down, create: oldest}}
health: {listen: "127.0.0.1:0", token: t0ken}
`, c.dsn, c.schema))
	r := startRelay(t, "--config", path, "--feed", "good")
	at := r.address()
	for _, page := range []string{"/livez", "/readyz", "/readyz?verbose"} {
		if code, _ := ask(t, at+page, ""); code != http.StatusUnauthorized {
			t.Errorf("%s without a token: %d", page, code)
		}
		if code, _ := ask(t, at+page, "t0kem"); code != http.StatusUnauthorized {
			t.Errorf("%s with a wrong token: %d", page, code)
		}
	}
	r.until("ready", func() bool { code, _ := ask(t, at+"/readyz", "t0ken"); return code == http.StatusOK })
	if code, body := ask(t, at+"/livez", "t0ken"); code != http.StatusOK {
		t.Errorf("/livez: %d %s", code, body)
	}
	r.end()
	if _, err := http.Get(at + "/livez"); err == nil { // nobody is there
		t.Error("somebody still answers")
	}

	c.enqueue(3)
	r = startRelay(t, "--config", path, "--health", "[::1]:0")
	at = r.address()
	var seen struct {
		Ready bool
		Feeds []feedHealth
	}
	r.until("one of two", func() bool {
		code, body := ask(t, at+"/readyz?verbose", "t0ken")
		if err := json.Unmarshal([]byte(body), &seen); err != nil || code != http.StatusServiceUnavailable || seen.Ready {
			t.Fatalf("%d, %v in\n%s", code, err, body)
		}
		return seen.Feeds[1].Ready && seen.Feeds[0].Buffered > 0
	})
	down, good := seen.Feeds[0], seen.Feeds[1]
	if down.Ready || strings.Join(down.WaitsFor, "") != "destination down" || down.LastError == "" {
		t.Errorf("%+v", down)
	}
	if !good.Ready || good.Shards == 0 || good.Shards != good.Quota || good.Members != 1 {
		t.Errorf("%+v", good)
	}
	r.end()
}

func TestHealthWithoutADatabase(t *testing.T) {
	t.Parallel()
	r := startRelay(t, "--to", "discard:", "--dsn", "postgres://rider:hidden-secret@127.0.0.1:1/db?sslmode=disable", "--health", "localhost:0")
	at := r.address()
	var body string
	r.until("not ready", func() bool {
		var code int
		code, body = ask(t, at+"/readyz?verbose", "")
		return code == http.StatusServiceUnavailable && strings.Contains(body, "last_error")
	})
	if !strings.Contains(body, `"its database"`) || strings.Contains(body, "hidden-secret") {
		t.Error(body)
	}
	if code, _ := ask(t, at+"/livez", ""); code != http.StatusOK {
		t.Errorf("/livez: %d", code)
	}
	r.end()
}

func TestHealthIsNotForEverybody(t *testing.T) {
	t.Parallel()
	r := offline(t, "relay", "--to", "discard:", "--health", ":8710")
	if r.code != exitUsage || !strings.Contains(r.err, "--health: other machines can call :8710") {
		t.Errorf("exit code %d\n%s", r.code, r.err)
	}
	r = offline(t, "relay", "--config", writeConfig(t, smallConfig), "--health", "0.0.0.0:8710")
	if r.code != exitUsage || !strings.Contains(r.err, "health.token is missing") {
		t.Errorf("exit code %d\n%s", r.code, r.err)
	}
}

func TestHealthOfAHangingRelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p progress
		alive := func(after time.Duration, s relay.Stats) bool {
			time.Sleep(after) // synctest's clock
			return p.alive(s, time.Now(), stalled)
		}
		for i, c := range []struct {
			after time.Duration
			stats relay.Stats
			want  bool
		}{
			{0, relay.Stats{}, true},
			{time.Hour, relay.Stats{}, true}, // it has not joined: the database is down
			{time.Hour, relay.Stats{Reads: 1}, true},
			{stalled - 1, relay.Stats{Reads: 1}, true},
			{1, relay.Stats{Reads: 1}, false},
			{1, relay.Stats{Reads: 1, Balances: 1}, true},
			{time.Hour, relay.Stats{Reads: 1, Balances: 1, Paused: "foreign"}, true},
			{time.Hour, relay.Stats{Reads: 1, Balances: 1}, false},
			{time.Hour, relay.Stats{Reads: 1, Balances: 1, Settles: 1}, true},
		} {
			if got := alive(c.after, c.stats); got != c.want {
				t.Errorf("step %d: alive %v", i, got)
			}
		}
	})
}

func TestListenedPublisherHasNames(t *testing.T) {
	m := postrider.Message{Type: "t", Topic: "orders"}
	for want, pub := range map[string]postrider.Publisher{"orders": memory.New(), "": discard.New()} {
		if got := (listened{newDestination("d", pub, slog.Default())}).NameOf(&m); got != want {
			t.Errorf("%T: got %q, want %q", pub, got, want)
		}
	}
}

func TestHealthAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a answers
		down := errors.New("down")
		if a.silent(0) || !a.silent(time.Minute) || a.ever() {
			t.Error("of somebody who was never asked nothing is known")
		}
		a.note(answered([]error{down, down}))
		if !a.silent(0) {
			t.Error("the only answer was a failure")
		}
		a.note(answered([]error{postrider.Unavailable(down), postrider.Unavailable(postrider.ErrNotTried)}))
		if !a.silent(0) {
			t.Error("nothing was sent")
		}
		for _, refusal := range []error{postrider.Permanent(down), postrider.NameUnavailable(down)} {
			if answered([]error{down, refusal}) != nil {
				t.Errorf("%v is no answer", refusal)
			}
		}
		a.note(answered([]error{down, postrider.Permanent(down)}))
		a.note(context.Canceled)
		if a.silent(0) || a.silent(time.Minute) || !a.ever() {
			t.Error("a refusal is an answer")
		}
		time.Sleep(graceAfterAnswer) // synctest's clock
		if a.silent(0) {
			t.Error("nobody has asked since")
		}
		time.Sleep(time.Nanosecond)
		a.note(down)
		if !a.silent(0) {
			t.Error("it fails")
		}
	})
}

func TestHealthRefusesOtherMethods(t *testing.T) {
	t.Parallel()
	h := &health{Health: config.Health{}, service: &service{}, ctx: t.Context()}
	w := httptest.NewRecorder()
	h.handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/livez", nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("%d", w.Code)
	}
}
