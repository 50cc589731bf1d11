package scale

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMedian(t *testing.T) {
	phases := []Phase{{Seconds: 1, Messages: 30}, {Seconds: 1, Messages: 10}, {Seconds: 1, Messages: 20}}
	if m := Median(phases, Phase.PerSecond); m != 20 {
		t.Errorf("of three: %g", m)
	}
	if m := Median(phases[:2], Phase.PerSecond); m != 20 {
		t.Errorf("of two: %g", m)
	}
	if m := Median(nil, Phase.PerSecond); m != 0 {
		t.Errorf("of none: %g", m)
	}
	if m := Median([]Phase{{WAL: 5}}, PerCommitted(WAL)); m != 0 {
		t.Errorf("without messages: %g", m)
	}
}

// TestMeasured: the constants that come with the program have what plans are made from.
func TestMeasured(t *testing.T) {
	set, err := Measured()
	if err != nil {
		t.Fatal(err)
	}
	for _, series := range []string{Base, Payload, Shards, Relays, Feeds, Databases, Broker, Rate, Idle, Drain, Check} {
		if len(set.In(series)) == 0 {
			t.Errorf("there is no cell of %s", series)
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	for text, want := range map[string]string{`{"bare_per_second": 3}`: "unknown field", `{}{}`: "more follows", `{`: "EOF"} {
		path := filepath.Join(t.TempDir(), "constants.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(path); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
