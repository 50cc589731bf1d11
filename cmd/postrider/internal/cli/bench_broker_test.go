package cli

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

func TestBenchBroker(t *testing.T) {
	c := newCLI(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"))
	t.Setenv("POSTRIDER_NATS_URL", need.Env(t, "POSTRIDER_TEST_NATS", "nats"))
	got := decode[map[string]any](t, c.must("bench", "broker", "--broker", "nats", "--messages", "3000", "--rounds", "2", "--json"))
	names := strings.Join(slices.Sorted(maps.Keys(got)), " ")
	if names != "bare_per_second broker keys messages ratio relay_per_second undelivered" {
		t.Errorf("fields %q", names)
	}
	for name, value := range got {
		if number, ok := value.(float64); ok && (number == 0) != (name == "undelivered") {
			t.Errorf("%s is %v", name, number)
		}
	}
	c.expectNoBenchSchema()
}

func TestBenchBrokerUsage(t *testing.T) {
	c := newCLI(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"))
	t.Setenv("POSTRIDER_KAFKA_URL", "")
	for _, line := range []string{"", "--broker pigeon", "--broker kafka", "--broker nats --url nats://x --set format"} {
		r := c.run(append([]string{"bench", "broker"}, strings.Fields(line)...)...)
		if r.code != exitUsage {
			t.Errorf("bench broker %s: exit code %d, want %d: %s", line, r.code, exitUsage, r.err)
		}
	}
}
