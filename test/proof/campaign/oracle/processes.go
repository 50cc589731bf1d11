package oracle

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/postrider/postrider/test/proof/campaign/record"
)

// The budget of I12. Processes are killed and restarted, so each role is compared with itself: the
// second half with the first, after a warm-up. A leak increases the minimum, the median and the
// maximum. Without a leak, connections and the goroutines that serve them may increase one or two
// of these: a fault opens many for a moment, and pools stay as large as recent work required.
const (
	growth        = 0.05
	warmUp        = 0.1
	fewestSamples = 10 // of a role, in each half
)

// resource is something that may leak.
type resource struct {
	name      string
	allowance int64 // in addition to growth: noise in a small process
	of        func(record.Process) int64
}

var resources = []resource{
	{"bytes of memory", 16 << 20, func(p record.Process) int64 { return p.RSS }},
	{"goroutines", 10, func(p record.Process) int64 { return int64(p.Goroutines) }},
	{"open files", 10, func(p record.Process) int64 { return int64(p.Files) }},
}

func (r resource) grew(a, b int64) bool {
	return float64(b) > float64(a)*(1+growth)+float64(r.allowance)
}

// checkProcesses looks for leaks (I12).
func checkProcesses(samples []record.Sample) Finding {
	const id, name, budget = "I12", "leaks: memory, goroutines, files", "+5 % from half to half"
	halves := split(samples)
	var found evidence
	compared := []string{}
	for _, role := range roles(samples) {
		for _, what := range resources {
			first, second := values(halves[0], role, what), values(halves[1], role, what)
			if len(first) < fewestSamples || len(second) < fewestSamples {
				continue
			}
			a, b := median(first), median(second)
			compared = append(compared, fmt.Sprintf("%s %s %d → %d", role, what.name, a, b))
			if what.grew(a, b) && what.grew(slices.Max(first), slices.Max(second)) && what.grew(slices.Min(first), slices.Min(second)) {
				found.add("%s: %s grew from %d to %d", role, what.name, a, b)
			}
		}
	}
	if len(compared) == 0 {
		return notChecked(id, name, budget, fmt.Sprintf("fewer than %d samples of a role in each half", fewestSamples))
	}
	note := ""
	for _, c := range compared {
		note = join(note, c)
	}
	return found.judge(id, name, budget, note)
}

// split returns both halves of the time after the warm-up.
func split(samples []record.Sample) (halves [2][]record.Sample) {
	if len(samples) == 0 {
		return halves
	}
	begin, end := samples[0].At, samples[len(samples)-1].At
	begin = begin.Add(time.Duration(warmUp * float64(end.Sub(begin))))
	middle := begin.Add(end.Sub(begin) / 2)
	for _, s := range samples {
		switch {
		case s.At.Before(begin):
		case s.At.Before(middle):
			halves[0] = append(halves[0], s)
		default:
			halves[1] = append(halves[1], s)
		}
	}
	return halves
}

func roles(samples []record.Sample) []string {
	found := map[string]bool{}
	for _, s := range samples {
		for _, p := range s.Processes {
			found[p.Role] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// values returns the values of all processes of a role, except those that could not be read.
func values(samples []record.Sample, role string, what resource) (all []int64) {
	for _, s := range samples {
		for _, p := range s.Processes {
			if n := what.of(p); p.Role == role && n > 0 {
				all = append(all, n)
			}
		}
	}
	return all
}

func median(all []int64) int64 {
	slices.Sort(all)
	return all[len(all)/2]
}
