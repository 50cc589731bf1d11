package oracle

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// judgeDuplicates checks duplicates (I6): a fault must explain each, and their total must be small.
func (v *Verdict) judgeDuplicates(all []*arrivals) Finding {
	var unexplained evidence
	var latest time.Duration
	var asked int64
	var places []string
	v.Duplicates = map[string]int64{}
	perFault := map[*span]int64{}
	for _, a := range all {
		unexplained.merge(a.unexplained)
		latest = max(latest, a.latest)
		asked += a.asked
		if a.duplicates > 0 || a.once {
			places = append(places, fmt.Sprintf("%s %d", a.destination, a.duplicates))
		}
		for s, n := range a.byFault {
			perFault[s] += n
			kind := ""
			if s != nil {
				kind = s.Kind
			}
			v.Duplicates[kind] += n
		}
	}
	var worst *span
	for s, n := range perFault {
		if s != nil && (worst == nil || n > perFault[worst] || n == perFault[worst] && s.Fault < worst.Fault) {
			worst = s
		}
	}
	share := v.Counts.DuplicateShare()
	note := fmt.Sprintf("%d duplicates of %d events, %d not explained", v.Counts.Duplicates, v.Counts.Events, unexplained.count)
	if asked > 0 {
		note = join(note, fmt.Sprintf("%d more that operators asked for", asked))
	}
	if len(places) > 0 {
		slices.Sort(places)
		note = join(note, strings.Join(places, ", "))
	}
	if worst != nil {
		note = join(note, fmt.Sprintf("most by fault %d, %s: %d", worst.Fault, worst.Kind, perFault[worst]))
	}
	if latest > 0 {
		note = join(note, fmt.Sprintf("the last %.1f s after its fault was healed", latest.Seconds()))
	}
	if v.Counts.TooManyDuplicates() {
		unexplained.add("%.4f %% of the events that may come twice, after %d faults, are too many", 100*share, v.Counts.Faults)
	}
	f := unexplained.judge("I6", "duplicates at brokers (share of events, %)", "< 0.05 %, each explained", note)
	f.Figure = 100 * share
	return f
}
