package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider/cmd/postrider/internal/bench"
	"github.com/postrider/postrider/cmd/postrider/internal/scale"
	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// runLong runs a command line that takes longer than others. Relays that it starts are this program too.
func (c *cli) runLong(args ...string) result {
	c.t.Helper()
	c.t.Setenv(runAsCommand, "1")
	ctx, cancel := context.WithTimeout(c.t.Context(), 10*time.Minute)
	defer cancel()
	var out, messages bytes.Buffer
	s := streams{in: strings.NewReader(""), out: &out, err: &messages}
	code := execute(ctx, s, append(args, "--dsn", c.dsn))
	return result{code, out.String(), messages.String()}
}

// TestBenchScale measures a few layouts, plans with what it has found, and holds that nothing is left behind.
func TestBenchScale(t *testing.T) {
	need.Long(t, "more than a minute")
	c := newCLI(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES15"))
	t.Setenv("POSTRIDER_NATS_URL", need.Env(t, "POSTRIDER_TEST_NATS", "nats"))
	file := filepath.Join(t.TempDir(), "constants.json")
	r := c.runLong("bench", "scale", "--quick", "--broker", "nats", "--json")
	if r.code != exitOK {
		t.Fatalf("exit code %d\n%s", r.code, r.err)
	}
	if err := os.WriteFile(file, []byte(r.out), 0o600); err != nil {
		t.Fatal(err)
	}
	set, err := scale.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]int)
	for _, cell := range set.Cells {
		seen[cell.Series]++
		p := cell.Relayed[0]
		idle := cell.Series == scale.Idle
		if p.Seconds <= 0 || p.Reads == 0 || p.RelayConnections < 2 || p.RelayMemory == 0 || p.WAL < 0 {
			t.Errorf("%s: %+v", cell.Series, p)
		}
		few := idle || cell.Rate > 0 // for a clock that ticks a hundred times a second
		if !idle && p.Published == 0 || !few && (p.CPU.Relays == 0 || p.CPU.Readers == 0) {
			t.Errorf("%s: %+v", cell.Series, p)
		}
		if full := !idle && cell.Rate == 0 && cell.Series != scale.Drain; full && (len(cell.Bare) != 1 || cell.Disk < float64(cell.Payload) ||
			cell.Bare[0].WAL < cell.Bare[0].Messages*int64(cell.Payload) || cell.Bare[0].CPU.Producers == 0) {
			t.Errorf("%s: %+v", cell.Series, cell)
		}
	}
	for _, series := range []string{scale.Base, scale.Payload, scale.Shards, scale.Relays, scale.Feeds, scale.Databases, scale.Broker, scale.Rate,
		scale.Idle, scale.Drain, scale.Check} {
		if seen[series] == 0 {
			t.Errorf("no cell of %s; left out: %q", series, set.LeftOut)
		}
	}
	if len(set.Business) != 1 || set.Sequence == 0 || set.Machine.Cores == 0 || set.Server.Settings["fsync"] == "" {
		t.Errorf("%+v, %+v, %g", set.Business, set.Machine, set.Sequence)
	}
	if set.Command != "postrider bench scale --broker nats --quick --json" {
		t.Errorf("the command is %q", set.Command)
	}
	if p := c.run("plan", "--rate", "100", "--constants", file); p.code != exitOK || !strings.Contains(p.out, "destination nats") {
		t.Errorf("%+v", p)
	}
	c.expectNoBenchSchema()
	var left int
	err = c.pool.QueryRow(t.Context(), "SELECT count(*) FROM pg_database WHERE datname LIKE 'postrider\\_bench\\_' || $1 || '%'", os.Getpid()).Scan(&left)
	if err != nil || left > 0 {
		t.Errorf("%d databases are left, %v", left, err)
	}
}

// TestBenchSoak is the soak in short. How fast the machine is must not matter: latencies are not judged here.
func TestBenchSoak(t *testing.T) {
	need.Long(t, "more than a minute")
	c := newCLI(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"))
	t.Setenv("POSTRIDER_NATS_URL", need.Env(t, "POSTRIDER_TEST_NATS", "nats"))
	svg := filepath.Join(t.TempDir(), "soak.svg")
	r := c.runLong("bench", "soak", "--for", "40s", "--load", "50%", "--broker", "nats", "--svg", svg, "--json")
	got := decode[bench.SoakResult](t, r.out)
	if got.Missing != 0 || got.Messages == 0 || got.Rate < 1 || len(got.Samples) < 30 {
		t.Fatalf("exit code %d, %d messages, %d missing, %d samples\n%s", r.code, got.Messages, got.Missing, len(got.Samples), r.err)
	}
	judged := 0
	for _, trend := range got.Trends {
		if trend.Why == "" {
			judged++
		}
		if trend.Why == "" && !trend.Flat && trend.Unit != "ms" {
			t.Errorf("%+v", trend)
		}
	}
	if last := got.Samples[len(got.Samples)-1]; judged < 9 || last.RelayGoroutines == 0 || last.Log == 0 || last.Inbox == 0 || last.LedgerRows == 0 {
		t.Errorf("%d trends were judged; the last sample is %+v", judged, last)
	}
	if (r.code == exitOK) != got.Flat {
		t.Errorf("exit code %d, flat is %v", r.code, got.Flat)
	}
	if picture, err := os.ReadFile(svg); err != nil || !bytes.Contains(picture, []byte("memory of the relay")) {
		t.Errorf("the picture: %v", err)
	}
	c.expectNoBenchSchema()
}

func TestBenchSoakUsage(t *testing.T) {
	for line, want := range map[string]string{
		"--for 1s --load 120% --broker discard --url discard:": "--for is 1s: want at least 10s\nbench: --load is 120%",
		"--for 1m":         "--broker is not set",
		"--load 70":        "want a share such as 70%",
		"--for soon":       "want a duration such as 7d",
		"--broker discard": "--url is not set",
	} {
		if r := offline(t, append([]string{"bench", "soak"}, strings.Fields(line)...)...); r.code != exitUsage || !strings.Contains(r.err, want) {
			t.Errorf("%s: %+v", line, r)
		}
	}
}
