package prometheus_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/postrider/postrider/adapter/telemetry/prometheus"
)

var update = flag.Bool("update", false, "write the tables of docs/metrics.md again")

const (
	docs  = "../../../docs/metrics.md"
	begin = "<!-- generated: go test -run TestDocs -update, in adapter/telemetry/prometheus -->\n"
	end   = "<!-- end of what is generated -->\n"
)

// The tables of the documentation match the metrics.
func TestDocs(t *testing.T) {
	have := readDocs(t)
	before, rest, found := strings.Cut(have, begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no place for the tables", docs)
	}
	want := before + begin + tables() + end + after
	if have == want {
		return
	}
	if !*update {
		t.Fatalf("%s differs from the metrics; -update writes it again", docs)
	}
	if err := os.WriteFile(docs, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

func readDocs(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func tables() string {
	var b strings.Builder
	for _, question := range prometheus.Questions() {
		fmt.Fprintf(&b, "\n## %s\n\n| name | kind | labels | meaning |\n|---|---|---|---|\n", question)
		for _, d := range prometheus.Descriptions() {
			if d.Question == question {
				fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", d.Name, d.Kind, "`"+strings.Join(d.Labels, "`, `")+"`", d.Help)
			}
		}
	}
	return b.String() + "\n"
}

// Each required figure has an expression that Prometheus can parse and that uses existing metrics
// and labels.
func TestDescribedNames(t *testing.T) {
	rows := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| `([^`]+)` \\| ").FindAllStringSubmatch(readDocs(t), -1)
	mapped := make(map[string]string)
	for _, row := range rows {
		mapped[row[1]] = row[2]
	}
	labels := make(map[string][]string)
	for _, d := range prometheus.Descriptions() {
		labels[d.Name] = d.Labels
		if d.Kind == "histogram" {
			labels[d.Name+"_bucket"] = append(d.Labels, "le")
			labels[d.Name+"_sum"], labels[d.Name+"_count"] = d.Labels, d.Labels
		}
	}
	metric, by := regexp.MustCompile(`postrider_\w+`), regexp.MustCompile(`by \(([^)]*)\)`)
	rules := "groups:\n  - name: postrider-names\n    rules:\n"
	for _, name := range []string{
		"outbox_pending_count", "outbox_oldest_age_seconds", "outbox_backlog", "outbox_failed", "outbox_dead", "outbox_process_latency",
		"outbox_publish_latency", "outbox_failure_count", "events_enqueued_total", "events_dispatched_total", "events_retry_total",
		"events_failed_total", "reconcile_fixed_total", "outbox_processing_duration", "outbox_processed_total", "outbox_failed_total",
		"events_in_memory_queue_gauge",
	} {
		expr := mapped[name]
		if expr == "" {
			t.Errorf("%s is not mapped", name)
			continue
		}
		var has []string
		for _, used := range metric.FindAllString(expr, -1) {
			if _, known := labels[used]; !known {
				t.Errorf("%s is mapped to %s, which does not exist", name, used)
			}
			has = append(has, labels[used]...)
		}
		for _, list := range by.FindAllStringSubmatch(expr, -1) {
			for label := range strings.SplitSeq(list[1], ", ") {
				if !slices.Contains(has, label) {
					t.Errorf("%s is grouped by %s, which is no label of it", name, label)
				}
			}
		}
		rules += fmt.Sprintf("      - record: %s\n        expr: %s\n", name, expr)
	}
	const file = "../../../deploy/prometheus/names.rules.yml"
	if shipped, err := os.ReadFile(file); err != nil || !strings.HasSuffix(string(shipped), "\n"+rules) {
		t.Errorf("%s is not what docs/metrics.md says (%v): below its comment, want\n%s", file, err, rules)
	}
	promtool(t, "", "check", "rules", file)
}
