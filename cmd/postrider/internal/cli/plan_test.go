package cli

import (
	"strings"
	"testing"
	"time"
)

func TestPlan(t *testing.T) {
	t.Parallel()
	r := offline(t, "plan", "--rate", "5000", "--databases", "20", "--message-size", "1KiB", "--destinations", "2", "--retention", "7d")
	if r.code != exitOK {
		t.Fatalf("%+v", r)
	}
	for _, want := range []string{"relay processes", "--period 28h", "WAL", "cores of relays", "A BILLION MESSAGES", "computed", "assumed"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("it does not tell of %q:\n%s", want, r.out)
		}
	}
	for _, want := range []string{"the first ceiling is", "then: ", "measured on", "assumed: 70%"} {
		if !strings.Contains(r.err, want) {
			t.Errorf("it does not say %q:\n%s", want, r.err)
		}
	}
	got := decode[map[string]any](t, offline(t, "plan", "--rate", "5000", "--message-size", "2MB", "--json").out)
	for _, field := range []string{"inputs", "relays", "shards", "connections", "wal_bytes_per_second", "log_bytes", "server_cores", "relay_cores",
		"statements_per_second", "relay_memory_bytes", "ceilings", "rate_to_ceiling", "cost_per_billion", "constants", "beyond_measured", "retention"} {
		if got[field] == nil {
			t.Errorf("no %s in %v", field, got)
		}
	}
}

func TestPlanUsage(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"":                                  "--rate is 0",
		"--rate 1 --message-size big":       "want a size such as",
		"--rate 1 --message-size -1KiB":     "want a size such as",
		"--rate 1 --retention 7x":           "want a duration such as",
		"--rate 1 --load 50":                "want a share such as 70%",
		"--rate 1 --constants missing.json": "missing.json",
		"--rate 1 --broker carrier-pigeon":  "postrider bench scale --broker",
		"--rate 1 now":                      "takes no arguments",
		"--rate -1 --relays 2 --zones 3":    "--rate is -1: want messages a second, more than 0\nplan: --zones 3 and --relays 2 contradict each other",
	} {
		if r := offline(t, append([]string{"plan"}, strings.Fields(line)...)...); r.code != exitUsage || !strings.Contains(r.err, want) {
			t.Errorf("%s: %+v", line, r)
		}
	}
}

// TestPlanFlags: what a flag prints as its default it also takes.
func TestPlanFlags(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"0": 0, "300": 300, "1KiB": 1024, "1.5KiB": 1536, "2MB": 2_000_000, "3 GiB": 3 << 30, "7B": 7, "5kB": 5000} {
		var f, again sizeFlag
		if err := f.Set(text); err != nil || int64(f) != want {
			t.Errorf("%s is %d, %v", text, f, err)
		}
		if err := again.Set(f.String()); err != nil || again != f {
			t.Errorf("%s is shown as %s", text, &f)
		}
	}
	for text, want := range map[string]time.Duration{"7d": 168 * time.Hour, "12h": 12 * time.Hour, "0.5d": 12 * time.Hour, "1h30m": 90 * time.Minute} {
		var f, again daysFlag
		if err := f.Set(text); err != nil || time.Duration(f) != want {
			t.Errorf("%s is %s, %v", text, &f, err)
		}
		if err := again.Set(f.String()); err != nil || again != f {
			t.Errorf("%s is shown as %s", text, &f)
		}
	}
	var p percentFlag
	if err := p.Set("70%"); err != nil || p.String() != "70%" {
		t.Errorf("%s, %v", &p, err)
	}
}
