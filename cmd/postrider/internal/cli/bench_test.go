package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/postrider/postrider/cmd/postrider/internal/bench"
	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// TestBench runs each scenario with tiny numbers and holds the fields of its JSON.
func TestBench(t *testing.T) {
	// Half a minute at full load for each server, to see names.
	each := func(t *testing.T, f func(*testing.T, string)) { f(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18")) }
	if need.IsLong() {
		each = pgtest.Each
	}
	each(t, func(t *testing.T, dsn string) {
		for line, fields := range map[string]string{
			"overhead --seconds 1 --rounds 1 --writers 4": "bare_per_second business_per_second business_ratio p50_ms p99_ms ratio " +
				"relayed_per_second undelivered",
			"idle --seconds 1": "databases relay_ms_per_second round_trips_per_second server_ms_per_second " +
				"sessions_ms_per_second statements_counted_by statements_per_second",
			"drain --messages 20000 --rounds 1": "bare_select_per_second per_second ratio undelivered",
			"held-xmin --seconds 1 --writers 4": "baseline_per_second dead_tuples held_per_second p99_baseline_ms " +
				"p99_held_ms ratio",
			"latency --seconds 1 --rate 200": "max_ms p50_ms p99_ms",
			"backlog --messages 20000":       "drain_slope longest_statement_ms points slope_ratio",
			"consume --seconds 1 --rounds 1 --received 2000": "bare_per_second batch_bare_per_second batch_inbox_per_second batch_ratio " +
				"full_against_empty full_batch_ratio full_inbox_per_second full_ratio inbox_per_second ratio received",
		} {
			scenario, _, _ := strings.Cut(line, " ")
			t.Run(scenario, func(t *testing.T) {
				c := newCLI(t, dsn)
				got := decode[map[string]any](t, c.must(append([]string{"bench", "--json"}, strings.Fields(line)...)...))
				if names := strings.Join(slices.Sorted(maps.Keys(got)), " "); names != fields {
					t.Errorf("fields %q, want %q", names, fields)
				}
				for name, value := range got {
					number, ok := value.(float64)
					zero := name == "undelivered" || name == "dead_tuples"
					if ok && (number == 0) != zero {
						t.Errorf("%s is %v", name, number)
					}
				}
				c.expectNoBenchSchema()
				c.expectNoBenchDatabase()
			})
		}
	})
}

// TestBenchEnqueue holds what every run must find, however noisy the machine is: how often each variant waits for the server, and
// that messages are more WAL.
func TestBenchEnqueue(t *testing.T) {
	c := newCLI(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES15"))
	text := c.must(strings.Fields("bench enqueue --seconds 1 --rounds 5 --writers 2 --synchronous-commit off --json")...)
	fields := strings.Join(slices.Sorted(maps.Keys(decode[map[string]any](t, text))), " ")
	if fields != "batch10_ratio business_server_us client_ratio enqueue_server_us pipelined_ratio plain_server_us ratio variants writers" {
		t.Errorf("fields %q", fields)
	}
	r := decode[bench.EnqueueResult](t, text)
	want := map[string]float64{
		"business": 3, "plain": 4, "enqueue": 4, "enqueue10": 4, "enqueue100": 4, "function": 4, "insert": 4,
		"pipelined_business": 1, "pipelined_plain": 1, "pipelined_enqueue": 1,
	}
	alone := r.Variants[0].WAL
	for _, v := range r.Variants {
		if v.RoundTrips != want[v.Name] {
			t.Errorf("%s: %v round trips, want %v", v.Name, v.RoundTrips, want[v.Name])
		}
		if v.PerSecond == 0 || v.WritersPerSecond == 0 || v.Client == nil || v.Server == nil {
			t.Errorf("%+v", v)
		}
		if least := alone + float64(256*v.Messages); v.Messages > 1 && v.WAL < least {
			t.Errorf("%s: %v bytes of WAL, want at least %v", v.Name, v.WAL, least)
		}
		delete(want, v.Name)
	}
	if len(want) > 0 {
		t.Errorf("not measured: %v", want)
	}
	if r := c.run("bench", "enqueue", "--synchronous-commit", "maybe"); r.code != exitUsage || !strings.Contains(r.err, "synchronous-commit is") {
		t.Errorf("a setting that there is not: %+v", r)
	}
	c.expectNoBenchSchema()
}

// TestBenchIdleInterrupted holds that Ctrl-C leaves no database behind.
func TestBenchIdleInterrupted(t *testing.T) {
	c := newCLI(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES15"))
	for _, moment := range []string{"creating database 1", "with relays"} {
		ctx, cancel := context.WithCancel(t.Context())
		progress := &watched{text: moment, seen: cancel}
		s := streams{in: strings.NewReader(""), out: io.Discard, err: progress, watches: true}
		code := execute(ctx, s, []string{"bench", "idle", "--seconds", "1", "--dsn", c.dsn})
		cancel()
		if code != exitInterrupted {
			t.Errorf("%s: exit code %d\n%s", moment, code, progress)
		}
		c.expectNoBenchSchema()
		c.expectNoBenchDatabase()
	}
	if r := c.run("bench", "idle", "--databases", "0"); r.code != exitUsage {
		t.Errorf("no database: %+v", r)
	}
	if r := c.run("bench", "idle", "--databases", "100000"); r.code != exitFailure || !strings.Contains(r.err, "connections") {
		t.Errorf("more than the server can serve: %+v", r)
	}
}

func TestBenchTableAndKeep(t *testing.T) {
	c := newCLI(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES15"))
	r := c.run("bench", "backlog", "--messages", "1000", "--keep")
	if r.code != exitOK || !strings.Contains(r.out, "1000 waiting") {
		t.Errorf("%+v", r)
	}
	name := fmt.Sprintf("postrider_bench_%d", os.Getpid())
	if !strings.Contains(r.err, "DROP SCHEMA "+name+" CASCADE") {
		t.Errorf("it does not say how to remove the schema:\n%s", r.err)
	}
	c.exec("SELECT FROM " + name + ".messages")
	if r := c.run("bench", "latency"); r.code != exitFailure || !strings.Contains(r.err, "DROP SCHEMA "+name) {
		t.Errorf("beside another run: %+v", r)
	}
	c.exec("SELECT FROM " + name + ".messages") // untouched
	pgtest.Drop(t, c.pool, name)
}

// TestBenchInterrupted holds that Ctrl-C leaves nothing behind.
func TestBenchInterrupted(t *testing.T) {
	c := newCLI(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES15"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out bytes.Buffer
	progress := &watched{text: "with the relay", seen: cancel}
	s := streams{in: strings.NewReader(""), out: &out, err: progress, watches: true}
	code := execute(ctx, s, []string{"bench", "overhead", "--seconds", "1", "--rounds", "100", "--dsn", c.dsn})
	if code != exitInterrupted || out.Len() > 0 || !strings.Contains(progress.String(), "interrupted") {
		t.Errorf("exit code %d, printed %q\n%s", code, out.String(), progress)
	}
	c.expectNoBenchSchema()
}

func (c *cli) expectNoBenchSchema() {
	c.t.Helper()
	var found bool
	err := c.pool.QueryRow(c.t.Context(), "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)",
		fmt.Sprintf("postrider_bench_%d", os.Getpid())).Scan(&found)
	if err != nil || found {
		c.t.Errorf("the schema of the bench is still there: %v, %v", found, err)
	}
}

func (c *cli) expectNoBenchDatabase() {
	c.t.Helper()
	var found []string
	err := c.pool.QueryRow(c.t.Context(), "SELECT coalesce(array_agg(datname::text), '{}') FROM pg_database WHERE datname LIKE $1",
		fmt.Sprintf("postrider\\_bench\\_%d\\_%%", os.Getpid())).Scan(&found)
	if err != nil || len(found) > 0 {
		c.t.Errorf("databases of the bench are still there: %v, %v", found, err)
	}
}
