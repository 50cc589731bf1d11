package oracle

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/postrider/postrider/test/proof/campaign/record"
)

// Check checks the files of a run. An error means that they cannot be checked at all.
func Check(dir string) (Verdict, error) {
	r, err := record.Open(dir)
	if err != nil {
		return Verdict{}, err
	}
	v, err := CheckReader(r)
	v.Run = cmp.Or(v.Run, filepath.Base(dir))
	return v, err
}

// CheckReader is like Check, for open files.
func CheckReader(r *record.Reader) (Verdict, error) {
	v := Verdict{Run: r.Run.ID, Interrupted: r.Run.End.IsZero()}
	changed, err := r.Verify()
	if err != nil {
		return v, err
	}
	if len(changed) > 0 {
		v.Warnings = append(v.Warnings, "changed since the run: "+strings.Join(changed, ", "))
	}
	f, err := readFaults(r)
	if err != nil {
		return v, err
	}
	v.Faults = f.kinds()
	v.Counts.Faults = len(f.spans)
	samples, err := readSamples(r)
	if err != nil {
		return v, err
	}
	beside, err := v.checkMessages(r, f)
	if err != nil {
		return v, err
	}
	leases, err := checkLeases(r, f)
	if err != nil {
		return v, err
	}
	liveness, recoveries := checkRecovery(r.Run, f, samples)
	v.Findings = append(v.Findings, leases, beside.judge(liveness), checkDatabase(f, samples), checkProcesses(samples),
		checkNamed(f), checkProgress(f, samples), checkDead(r.Run, f, samples))
	slices.SortStableFunc(v.Findings, func(a, b Finding) int { return cmp.Or(len(a.ID)-len(b.ID), strings.Compare(a.ID, b.ID)) })
	v.Recoveries = recoveries
	if !v.Interrupted {
		v.Counts.Minutes = r.Run.End.Sub(r.Run.Begin).Minutes()
	} else if n := len(samples); n > 0 {
		v.Counts.Minutes = samples[n-1].At.Sub(samples[0].At).Minutes()
	}
	return v, nil
}

// checkMessages checks I1 to I7 and I11. It returns how long messages beside floods took.
func (v *Verdict) checkMessages(r *record.Reader, f *faults) (beside waits, err error) {
	l, whole, err := readLedger(r, f)
	if err != nil {
		return beside, err
	}
	destinations := r.Destinations()
	all := make([]*arrivals, len(destinations))
	errs := make([]error, len(destinations)+1)
	var d *deeds
	var passes sync.WaitGroup
	passes.Go(func() { d, errs[len(destinations)] = readEffects(r, l) })
	for i, destination := range destinations {
		passes.Go(func() { all[i], errs[i] = readReceipts(r, destination, slices.Contains(r.Run.Once, destination), l, f) })
	}
	passes.Wait()
	for _, err := range errs {
		if err != nil {
			return beside, err
		}
	}
	o, err := readOperations(r)
	if err != nil {
		return beside, err
	}
	x, err := readForeign(r)
	if err != nil {
		return beside, err
	}

	reason := ""
	switch {
	case l.events == 0:
		reason = "intents.gz was not written, or is empty"
	case !whole:
		reason = "intents.gz was cut short"
	}
	for _, a := range all {
		beside.merge(a.waits)
	}
	v.judgeMessages(r, l, reason, all, d, o, x)
	return beside, nil
}
