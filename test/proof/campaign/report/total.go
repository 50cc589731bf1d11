package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/postrider/postrider/test/proof/campaign/oracle"
)

// total combines the results of all runs.
type total struct {
	oracle.Counts
	kinds      []kind
	promises   map[promise]oracle.Destination
	recoveries []oracle.Recovery
	invariants []invariant
}

// promise is a destination, and whether nothing may come twice there.
type promise struct {
	destination string
	once        bool
}

func (p promise) compare(other promise) int {
	if c := cmp.Compare(p.destination, other.destination); c != 0 || p.once == other.once {
		return c
	}
	if p.once {
		return -1
	}
	return 1
}

// kind combines all faults of one kind.
type kind struct {
	name       string
	faults     int
	duplicates int64
	recoveries []float64 // seconds since the heal without another active fault, sorted
}

// invariant is one of I1 … I15 in all runs.
type invariant struct {
	oracle.Finding                      // of the first run; the value is that of all runs
	states         map[oracle.State]int // number of runs
	together       bool                 // broken by all runs together
}

// unexplained labels duplicates that no fault explains.
const unexplained = "(no fault)"

func sum(runs []Run) (t total) {
	t.promises = map[promise]oracle.Destination{}
	kinds := map[string]*kind{}
	of := func(name string) *kind {
		name = cmp.Or(name, unexplained)
		if kinds[name] == nil {
			kinds[name] = &kind{name: name}
		}
		return kinds[name]
	}
	for _, run := range runs {
		v := run.Verdict
		t.Minutes += v.Counts.Minutes
		t.Faults += v.Counts.Faults
		t.Events += v.Counts.Events
		t.Poison += v.Counts.Poison
		t.Receipts += v.Counts.Receipts
		t.Effects += v.Counts.Effects
		t.Operations += v.Counts.Operations
		t.Duplicates += v.Counts.Duplicates
		t.OnceEvents += v.Counts.OnceEvents
		t.OnceDuplicates += v.Counts.OnceDuplicates
		for name, d := range v.Destinations {
			all := t.promises[promise{name, d.Once}]
			all.Events += d.Events
			all.Duplicates += d.Duplicates
			all.Restored += d.Restored
			t.promises[promise{name, d.Once}] = all
		}
		t.recoveries = append(t.recoveries, v.Recoveries...)
		for name, n := range v.Faults {
			of(name).faults += n
		}
		for name, n := range v.Duplicates {
			of(name).duplicates += n
		}
		for _, r := range v.Recoveries {
			of(r.Kind).recoveries = append(of(r.Kind).recoveries, r.Clear)
		}
		t.judge(v.Findings)
	}
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		slices.Sort(kinds[name].recoveries)
		t.kinds = append(t.kinds, *kinds[name])
	}
	for i, f := range t.invariants {
		if f.ID == "I6" { // a ratio of totals, not a sum of ratios
			t.invariants[i].Figure, t.invariants[i].together = 100*t.DuplicateShare(), t.TooManyDuplicates()
		}
	}
	return t
}

func (t *total) judge(findings []oracle.Finding) {
	for _, f := range findings {
		i := slices.IndexFunc(t.invariants, func(known invariant) bool { return known.ID == f.ID })
		if i < 0 {
			i = len(t.invariants)
			t.invariants = append(t.invariants, invariant{Finding: f, states: map[oracle.State]int{}})
			t.invariants[i].Figure = 0
		}
		if known := &t.invariants[i]; f.ID == "I9" {
			known.Figure = max(known.Figure, f.Figure)
		} else {
			known.Figure += f.Figure
		}
		t.invariants[i].states[f.State]++
	}
}

// verdict returns in how many runs an invariant held.
func (i invariant) verdict(runs int) string {
	broken, unknown := i.states[oracle.Broken], i.states[oracle.NotChecked]
	switch {
	case broken == 0 && i.together:
		return "**broken** by all runs together"
	case broken == 0 && unknown == 0:
		return "ok"
	case unknown == runs:
		return "not checked"
	case broken == 0:
		return fmt.Sprintf("ok, not checked in %d of %d runs", unknown, runs)
	case unknown == 0:
		return fmt.Sprintf("**broken** in %d of %d runs", broken, runs)
	}
	return fmt.Sprintf("**broken** in %d of %d runs, not checked in %d", broken, runs, unknown)
}

// quantile returns a quantile of sorted values.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}
