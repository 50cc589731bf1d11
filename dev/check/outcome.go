package main

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A skip must begin with one of three reasons.
const (
	isLong  = "long: "  // need.Long: the test is part of make check-long
	isAlone = "alone: " // need.Alone: the test has the machine to itself, after the others
	isVoid  = "n/a: "   // the suite's test does not apply to this implementation
)

var logged = regexp.MustCompile(`(?m)^ *\S+\.go:\d+: (.*)$`)

// reason returns why a test was skipped.
func reason(r result) string {
	all := logged.FindAllStringSubmatch(r.Output, -1)
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1][1]
}

// An outcome summarizes the results of a run.
type outcome struct {
	Passed int
	Failed []result            // including disallowed skips
	Long   []result            // left to make check-long
	Void   int                 // tests that do not apply to an implementation
	Alone  map[string][]string // still to run, by package
}

// evaluate summarizes the results of all runs so far. In the long tier no test may be skipped.
func evaluate(results []result, long bool) outcome {
	v := outcome{Alone: make(map[string][]string)}
	ran := make(map[[2]string]bool)
	for _, r := range results {
		if r.Action == passed {
			ran[[2]string{r.Package, r.Test}] = true
		}
	}
	for _, r := range results {
		switch {
		case r.Action == failed || r.Action == unfinished:
			v.Failed = append(v.Failed, r)
		case r.Test == "": // a package without tests is skipped
		case r.Action == passed:
		case strings.HasPrefix(reason(r), isAlone):
			if !ran[[2]string{r.Package, r.Test}] {
				v.Alone[r.Package] = append(v.Alone[r.Package], r.Test)
			}
		case strings.HasPrefix(reason(r), isVoid):
			v.Void++
		case strings.HasPrefix(reason(r), isLong) && !long:
			v.Long = append(v.Long, r)
		default:
			r.Action = failed
			r.Output += "skipped: a test that cannot run fails here, unless it is part of make check-long (need.Long)\n"
			v.Failed = append(v.Failed, r)
		}
	}
	for key := range ran {
		if key[1] != "" {
			v.Passed++
		}
	}
	return v
}

// A tally counts the tests of a package that ran. Recorded tallies are those of an earlier run.
type tally struct {
	Tests   int     `json:"tests"` // that passed, including subtests
	Seconds float64 `json:"seconds"`
}

// tallies returns the tally of each package.
func tallies(results []result) map[string]tally {
	all := make(map[string]tally)
	seen := make(map[[2]string]bool)
	for _, r := range results {
		t := all[r.Package]
		key := [2]string{r.Package, r.Test}
		switch {
		case r.Test == "" && r.Action != skipped:
			t.Seconds += r.Seconds
		case r.Test != "" && r.Action == passed && !seen[key]:
			seen[key] = true
			t.Tests++
		default:
			continue
		}
		all[r.Package] = t
	}
	return all
}

// lost lists the packages of which fewer tests ran than recorded. After removing or renaming a test
// on purpose, record the new numbers with make check RECORD=1.
func lost(ran, recorded map[string]tally) (lines []string) {
	for pkg, want := range recorded {
		if have := ran[pkg]; have.Tests < want.Tests {
			lines = append(lines, fmt.Sprintf("%s: %d tests ran, %d are recorded", short(pkg), have.Tests, want.Tests))
		}
	}
	slices.Sort(lines)
	return lines
}

// slowest returns the n longest tests that have no subtests.
func slowest(results []result, n int) []result {
	parents := make(map[[2]string]bool)
	for _, r := range results {
		for name := r.Test; ; {
			i := strings.LastIndexByte(name, '/')
			if i < 0 {
				break
			}
			name = name[:i]
			parents[[2]string{r.Package, name}] = true
		}
	}
	var all []result
	for _, r := range results {
		if r.Test != "" && r.Action != skipped && !parents[[2]string{r.Package, r.Test}] {
			all = append(all, r)
		}
	}
	slices.SortStableFunc(all, func(a, b result) int { return cmp.Compare(b.Seconds, a.Seconds) })
	return all[:min(n, len(all))]
}

const root = "github.com/postrider/postrider"

// short returns a package's path without the common prefix.
func short(pkg string) string {
	if pkg == root {
		return "."
	}
	return strings.TrimPrefix(pkg, root+"/")
}
