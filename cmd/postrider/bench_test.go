package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

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
			"overhead --seconds 1 --rounds 1 --writers 4": "bare_per_second p50_ms p99_ms ratio relayed_per_second undelivered",
			"drain --messages 20000 --rounds 1":           "bare_select_per_second per_second ratio undelivered",
			"held-xmin --seconds 1 --writers 4": "baseline_per_second dead_tuples held_per_second p99_baseline_ms " +
				"p99_held_ms ratio",
			"latency --seconds 1 --rate 200": "max_ms p50_ms p99_ms",
			"backlog --messages 20000":       "points slope_ratio",
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
			})
		}
	})
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
