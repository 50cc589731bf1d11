package oracle

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/postrider/postrider/test/proof/campaign/record"
)

// The budget of I9: this long after a heal nothing may be pending, or the oldest message must be
// younger than fresh.
const (
	longestRecovery = 60 * time.Second
	fresh           = 2 * time.Second
)

// readSamples reads all samples of a run: one every few seconds.
func readSamples(r *record.Reader) (samples []record.Sample, err error) {
	for s, err := range r.Samples() {
		if errors.Is(err, record.ErrTruncated) {
			break
		}
		if err != nil {
			return nil, err
		}
		samples = append(samples, s)
	}
	slices.SortStableFunc(samples, func(a, b record.Sample) int { return a.At.Compare(b.At) })
	return samples, nil
}

func healthy(s record.Sample) bool {
	return s.Backlog != nil && (s.Backlog.Messages == 0 || s.Backlog.OldestSeconds < fresh.Seconds())
}

// checkRecovery checks how soon after each heal, and after the last one, nothing was pending (I9).
func checkRecovery(run record.Run, f *faults, samples []record.Sample) (Finding, []Recovery) {
	const id, name = "I9", "recovery after a heal (longest, s)"
	budget := fmt.Sprintf("≤ %v", longestRecovery.Seconds())
	var known []time.Time // times at which nothing was pending
	asked := 0
	for _, s := range samples {
		if s.Backlog != nil {
			asked++
		}
		if healthy(s) {
			known = append(known, s.At)
		}
	}
	if asked == 0 {
		return notChecked(id, name, budget, "no sample has a backlog"), nil
	}
	var found evidence
	var recoveries []Recovery
	longest := time.Duration(0)
	for _, s := range f.spans {
		if s.heal.IsZero() {
			continue
		}
		at := s.recovered
		if at.IsZero() {
			at = firstFrom(known, s.heal)
		}
		end := cmp.Or(at, samples[len(samples)-1].At)
		undisturbed := f.longestGap(s.heal, end)
		longest = max(longest, undisturbed)
		if undisturbed > longestRecovery {
			found.add("%s of %s (fault %d), healed at %s: messages waited for %.0f s in which no fault was under way",
				s.Kind, s.Target, s.Fault, clock(s.heal), undisturbed.Seconds())
		}
		if !at.IsZero() {
			seconds := max(0, at.Sub(s.heal).Seconds())
			recoveries = append(recoveries, Recovery{Fault: s.Fault, Kind: s.Kind, Seconds: seconds, Clear: undisturbed.Seconds()})
		}
	}
	reason := checkEnd(run, known, &found, &longest)
	note := fmt.Sprintf("%d of %d faults were followed by a recovery", len(recoveries), len(f.spans))
	finding := found.judge(id, name, budget, note).unless(reason)
	finding.Figure = longest.Seconds()
	return finding, recoveries
}

// checkEnd checks whether everything was delivered after the last heal of the run. It returns the
// reason if that was not observed.
func checkEnd(run record.Run, known []time.Time, found *evidence, longest *time.Duration) (reason string) {
	if run.Healed.IsZero() {
		return "the run has no moment at which all faults were healed"
	}
	at := firstFrom(known, run.Healed)
	if at.IsZero() {
		found.add("after all faults were healed at %s messages waited until the end", clock(run.Healed))
		return ""
	}
	took := at.Sub(run.Healed)
	*longest = max(*longest, took)
	if took > longestRecovery {
		found.add("after all faults were healed at %s messages waited for %.0f s", clock(run.Healed), took.Seconds())
	}
	return ""
}

// longestGap returns the longest period between two times without any fault that hinders.
func (f *faults) longestGap(from, to time.Time) (longest time.Duration) {
	free := from
	for _, s := range f.spans {
		if !s.hinders() || !s.heal.IsZero() && s.heal.Before(from) {
			continue
		}
		if !s.At.Before(to) {
			break
		}
		longest = max(longest, s.At.Sub(free))
		if s.heal.IsZero() {
			return longest
		}
		if s.heal.After(free) {
			free = s.heal
		}
	}
	return max(longest, to.Sub(free))
}

func firstFrom(times []time.Time, from time.Time) time.Time {
	i, _ := slices.BinarySearchFunc(times, from, func(t, from time.Time) int { return t.Compare(from) })
	if i == len(times) {
		return time.Time{}
	}
	return times[i]
}
