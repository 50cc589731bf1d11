package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/postrider/postrider/broker/brokertest/flaky"
	"github.com/postrider/postrider/internal/port"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// relayUntil runs "postrider relay" and stops it as a signal would when one of its two streams contains the text.
func (c *cli) relayUntil(out, messages *watched, args ...string) int {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	defer cancel()
	out.seen, messages.seen = cancel, cancel
	return execute(ctx, streams{in: strings.NewReader(""), out: out, err: messages},
		append([]string{"relay", "--dsn", c.dsn, "--schema", c.schema}, args...))
}

// never is a text that nobody prints.
const never = "\x00"

func TestRelayToStdout(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		c := newCLI(t, dsn)
		c.must("migrate", "up")
		c.enqueue(20)
		out, messages := &watched{text: `{"n" : 20}`}, &watched{text: never}
		if code := c.relayUntil(out, messages, "--to", "stdout:", "--log-format", "json"); code != exitOK {
			t.Fatalf("exit code %d\n%s", code, messages)
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != 20 {
			t.Fatalf("%d lines, want 20\n%s", len(lines), out)
		}
		for i, line := range lines {
			var m struct {
				Payload struct{ N int }
			}
			if err := json.Unmarshal([]byte(line), &m); err != nil || m.Payload.N != i+1 {
				t.Errorf("line %d: %s, %v", i, line, err)
			}
		}

		var last struct {
			Msg       string
			Published int64
		}
		d := json.NewDecoder(strings.NewReader(messages.String()))
		for {
			if err := d.Decode(&last); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%v in\n%s", err, messages)
			}
		}
		if last.Msg != "relay: stopped" || last.Published != 20 {
			t.Errorf("the last line says %+v", last)
		}

		// The clean stop has settled everything: a second relay finds nothing.
		c.enqueue(1)
		out, messages = &watched{text: "\n"}, &watched{text: never}
		if code := c.relayUntil(out, messages, "--to", "stdout:"); code != exitOK || strings.Count(out.String(), "\n") != 1 {
			t.Errorf("exit code %d, printed\n%s", code, out)
		}
		if !strings.Contains(messages.String(), "published=1 failed=0") {
			t.Errorf("no statistics in\n%s", messages)
		}
	})
}

// TestRelayWaitsForDatabase holds that an outage at the start does not end a relay.
func TestRelayWaitsForDatabase(t *testing.T) {
	t.Parallel()
	c := &cli{t: t, dsn: "postgres://rider:hidden-secret@127.0.0.1:1/db?sslmode=disable", schema: "postrider"}
	messages := &watched{text: "opening the feed fails"}
	if code := c.relayUntil(&watched{text: never}, messages, "--to", "discard:"); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(messages.String(), "trying again") || strings.Contains(messages.String(), "hidden-secret") {
		t.Errorf("it says\n%s", messages)
	}
}

// TestRelayRecoversFromADeadPort starts a relay before anybody listens at the address of its database.
func TestRelayRecoversFromADeadPort(t *testing.T) {
	c := newCLI(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES15"))
	c.must("migrate", "up")
	c.enqueue(1)
	server, err := pgconn.ParseConfig(c.dsn)
	if err != nil {
		t.Fatal(err)
	}
	dead := port.For(t)
	t.Setenv("DATABASE_URL", fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", url.UserPassword(server.User, server.Password), dead, server.Database))
	r := startRelay(t, "--to", "stdout:", "--schema", c.schema)
	r.until("it says so", func() bool { return strings.Contains(r.err.String(), "opening the feed fails, trying again") })
	flaky.ListenOn(t, dead, net.JoinHostPort(server.Host, strconv.Itoa(int(server.Port))))
	r.until("recovery", func() bool { return strings.Contains(r.out.String(), "\n") })
	r.end()
	if !strings.Contains(r.err.String(), "opening the feed has recovered") {
		t.Errorf("it says\n%s", r.err)
	}
}

func TestRelayHelpShowsDefaults(t *testing.T) {
	t.Parallel()
	r := offline(t, "relay", "--help")
	for _, want := range []string{"--lease", "10s", "--poll-min", "5ms", "--settle-interval", "50ms", "--maintain-interval", "1m0s"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("help lacks %q:\n%s", want, r.out)
		}
	}
}

func TestRelayFlagsThatContradict(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"--to discard: --retry-pauses 1s,5s --retry-most 1m":                          "--retry-pauses and --retry-first or --retry-most contradict each other",
		"--to discard: --order loose --retry-attempts -1":                             `Order is "loose"`,
		"--config " + writeConfig(t, smallConfig) + " --order skip --retry-pauses 1s": "sets it in feeds.NAME.order",
	} {
		r := offline(t, append([]string{"relay"}, strings.Fields(line)...)...)
		if r.code != exitUsage || !strings.Contains(r.err, want) {
			t.Errorf("%s: exit code %d\n%s", line, r.code, r.err)
		}
	}
}
