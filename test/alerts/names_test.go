package alerts_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/postrider/postrider/adapter/telemetry/prometheus"
)

var (
	// A metric with its optional selector, unless it is part of a recorded name.
	ofMetric = regexp.MustCompile(`(?:^|[^:\w])(postrider_[a-z0-9_]+)\b(?:\{([^}]*)\})?`)
	recorded = regexp.MustCompile(`\b[a-z]+:postrider_[a-z0-9_]+:[a-z0-9_]+\b`)
	grouped  = regexp.MustCompile(`\bby \(([^)]*)\)`)
	matcher  = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)`)
)

// given lists the labels that Prometheus adds, or that belong to histograms and alerts.
var given = []string{"job", "instance", "le", "alertname", "severity", "alertstate"}

// checkNames reports metrics and labels of an expression that nothing exports.
func checkNames(t *testing.T, where, expr string) {
	t.Helper()
	labels := exported()
	var known []string
	for _, found := range ofMetric.FindAllStringSubmatch(expr, -1) {
		has, ok := labels[found[1]]
		if !ok {
			t.Errorf("%s: nothing exports %s", where, found[1])
			continue
		}
		known = append(known, has...)
		for _, m := range matcher.FindAllStringSubmatch(found[2], -1) {
			if !slices.Contains(has, m[1]) && !slices.Contains(given, m[1]) {
				t.Errorf("%s: %s has no label %s", where, found[1], m[1])
			}
		}
	}
	if known == nil {
		return // recorded series are checked where they are recorded
	}
	for _, by := range grouped.FindAllStringSubmatch(expr, -1) {
		for label := range strings.SplitSeq(by[1], ",") {
			if label = strings.TrimSpace(label); !slices.Contains(known, label) && !slices.Contains(given, label) {
				t.Errorf("%s: no metric in it has a label %s", where, label)
			}
		}
	}
}

// exported returns all series that can be exported, with their labels.
func exported() map[string][]string {
	all := make(map[string][]string)
	for _, d := range prometheus.Descriptions() {
		if d.Kind != "histogram" {
			all[d.Name] = d.Labels
			continue
		}
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			all[d.Name+suffix] = d.Labels
		}
	}
	return all
}
