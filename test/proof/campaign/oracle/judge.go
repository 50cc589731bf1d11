package oracle

import (
	"fmt"
	"maps"
	"slices"

	"github.com/postrider/postrider/test/proof/campaign/record"
)

// judgeMessages combines the results of all passes. A non-empty reason makes all invariants about
// messages "not checked".
func (v *Verdict) judgeMessages(r *record.Reader, l *ledger, reason string, all []*arrivals, d *deeds, o calls, x foreign) {
	found := sweep(l, d)
	v.Counts.Events, v.Counts.Poison, v.Counts.Keys = l.events, l.poison, l.keys
	v.Counts.Effects, v.Counts.Operations = d.effects, o.count
	v.Destinations = make(map[string]Destination, len(all))
	for _, a := range all {
		v.Counts.Receipts += a.receipts
		v.Counts.Rereads += a.rereads
		v.Counts.Duplicates += a.duplicates
		d := Destination{Once: a.once, Events: l.size(a.destination), Duplicates: a.duplicates, Restored: a.restored}
		if a.once {
			v.Counts.OnceEvents += d.Events
			v.Counts.OnceDuplicates += d.Duplicates
		}
		v.Destinations[a.destination] = d
		if a.reused > 0 {
			v.Warnings = append(v.Warnings, fmt.Sprintf("%s: %d messages under positions that were read before", a.destination, a.reused))
		}
	}
	findings := []Finding{
		v.judgeLost(r, l, all, found, o, x), judgePhantoms(l, all, d), judgeOrder(all), judgeEffectOrder(r, d),
		v.judgeEffects(r, l, d, found, o), v.judgeDuplicates(all), judgeBytes(all), checkConservation(r, l, found),
	}
	for _, f := range findings {
		switch {
		case reason != "":
			f = notChecked(f.ID, f.Name, f.Budget, reason)
		case len(all) == 0 && f.ID != "I4":
			f = notChecked(f.ID, f.Name, f.Budget, "no receipts were written")
		}
		v.Findings = append(v.Findings, f)
	}
}

func (v *Verdict) judgeLost(r *record.Reader, l *ledger, all []*arrivals, found remains, o calls, x foreign) Finding {
	reason := ""
	if v.Interrupted {
		reason = "the run was cut short, and did not wait for everything to arrive"
	}
	if l.poison > 0 && !r.Has("dead") {
		reason = join(reason, "dead.gz was not written, so nothing is known of poison")
	}
	note := fmt.Sprintf("of %d committed", l.events)
	if l.poison > 0 {
		note = join(note, fmt.Sprintf("%d poisonous, %d of them deferred, %d accepted", l.poison, found.deadLetters, found.accepted))
	}
	for _, a := range all {
		if a.truncated {
			note = join(note, "receipts of "+a.destination+" are cut short")
		}
	}
	note = join(note, x.String())
	found.lost.merge(o.lost)
	found.lost.merge(x.vanished)
	finding := found.lost.judge("I1", "lost", "0", note)
	if v.Interrupted {
		return notChecked(finding.ID, finding.Name, finding.Budget, reason)
	}
	return finding.unless(reason)
}

func judgePhantoms(l *ledger, all []*arrivals, d *deeds) Finding {
	var found evidence
	for _, a := range all {
		found.merge(a.phantom)
	}
	found.merge(d.phantom)
	for _, m := range slices.SortedFunc(maps.Values(l.dead), byID) {
		if !m.known {
			found.add("%s is %s and was never committed", m.ID, m.State)
		}
	}
	return found.judge("I2", "phantoms", "0", "")
}

func judgeOrder(all []*arrivals) Finding {
	var found evidence
	var zombies, excused int64
	for _, a := range all {
		found.merge(a.inverted)
		found.merge(a.overlaps)
		zombies += a.zombies
		excused += a.excused
	}
	note := ""
	if zombies > 0 {
		note = fmt.Sprintf("%d more in reach of a relay that woke up after its lease", zombies)
	}
	if excused > 0 {
		note = join(note, fmt.Sprintf("%d overlaps of duplicates that a fault explains", excused))
	}
	return found.judge("I3", "inversions of first receipts", "0", note)
}

func judgeEffectOrder(r *record.Reader, d *deeds) Finding {
	f := d.inverted.judge("I4", "inversions of effects", "0", fmt.Sprintf("of %d effects", d.effects))
	return f.unless(noEffects(r, d))
}

func (v *Verdict) judgeEffects(r *record.Reader, l *ledger, d *deeds, found remains, o calls) Finding {
	double, reason := d.double, noEffects(r, d)
	double.merge(o.double)
	note := fmt.Sprintf("of %d effects", d.effects)
	switch {
	case v.Interrupted:
		note = join(note, "the run was cut short: only double effects were looked for")
	case reason == "":
		note = join(note, fmt.Sprintf("%d double, %d missing", double.count, found.undone.count))
		double.merge(found.undone)
	}
	for _, destination := range slices.Sorted(maps.Keys(l.destinations)) {
		if len(d.owed[destination]) == 0 {
			note = join(note, destination+" has no consumer")
		}
	}
	return double.judge("I5", "double or missing effects", "0", note).unless(reason)
}

func noEffects(r *record.Reader, d *deeds) string {
	switch {
	case !r.Has("effects"):
		return "effects.gz was not written"
	case d.effects == 0 && len(r.Run.Consumers) == 0:
		return "effects.gz is empty"
	}
	return ""
}

func judgeBytes(all []*arrivals) Finding {
	var found evidence
	receipts := int64(0)
	for _, a := range all {
		found.merge(a.changed)
		receipts += a.receipts
	}
	return found.judge("I7", "changed payloads or headers", "0", fmt.Sprintf("of %d receipts", receipts))
}
