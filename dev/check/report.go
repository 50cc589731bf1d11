package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

// A report has the measurements of a run. The last recorded one is in recorded.json.
type report struct {
	Tier     string             `json:"tier"`
	Seconds  map[string]float64 `json:"seconds"` // by step
	Packages map[string]tally   `json:"packages"`
}

func readReport(path string) (r report, err error) {
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return r, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	return r, err
}

func (r report) write(path string) error {
	text, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// print shows the time of each step beside the recorded time.
func (r report) print(w io.Writer, steps []string, results []result, before report) {
	const columns = "%9s %9s  %s\n"
	fmt.Fprintf(w, "\n"+columns, "minutes", "recorded", "step")
	for _, s := range steps {
		fmt.Fprintf(w, columns, minutes(r.Seconds[s]), minutes(before.Seconds[s]), s)
	}
	fmt.Fprintf(w, "\n"+columns, "seconds", "recorded", "slowest packages, and how many tests each has")
	for _, path := range r.slowest(30) {
		have, was := r.Packages[path], before.Packages[path]
		fmt.Fprintf(w, columns, fmt.Sprintf("%.1f", have.Seconds), fmt.Sprintf("%.1f", was.Seconds), fmt.Sprintf("%s (%d)", short(path), have.Tests))
	}
	fmt.Fprintf(w, "\n%9s  %s\n", "seconds", "slowest tests")
	for _, t := range slowest(results, 30) {
		fmt.Fprintf(w, "%9.1f  %s %s\n", t.Seconds, short(t.Package), t.Test)
	}
}

// slowest returns the n packages with the longest tests, over all runs together.
func (r report) slowest(n int) []string {
	all := slices.SortedFunc(maps.Keys(r.Packages), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.Packages[b].Seconds, r.Packages[a].Seconds), cmp.Compare(a, b))
	})
	return all[:min(n, len(all))]
}

func minutes(seconds float64) string {
	if seconds == 0 {
		return "-"
	}
	return fmt.Sprintf("%d:%02d", int(seconds)/60, int(seconds)%60)
}

// indent indents a test's output.
func indent(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ")
}

// list has one line for every test and its result.
func list(results []result) string {
	var lines []string
	for _, r := range results {
		if r.Test == "" {
			continue
		}
		how := r.Action
		if r.Action == skipped {
			how = reason(r)
		}
		lines = append(lines, fmt.Sprintf("%s %s: %s\n", short(r.Package), r.Test, how))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}
