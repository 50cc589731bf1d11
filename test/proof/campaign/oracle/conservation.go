package oracle

import (
	"fmt"
	"maps"
	"slices"

	"github.com/postrider/postrider/test/proof/campaign/record"
)

// checkConservation compares the product's own counts with the ledger (I11): they must match what
// was committed, and every discarded message must have an actor.
func checkConservation(r *record.Reader, l *ledger, found remains) Finding {
	const id, name, budget = "I11", "pending + sent + parked + discarded = inserted", "0 differences"
	if len(r.Run.Tallies) == 0 {
		return notChecked(id, name, budget, "run.json has no tallies")
	}
	if !r.Has("dead") {
		return notChecked(id, name, budget, "dead.gz was not written")
	}
	var against evidence
	for _, destination := range slices.Sorted(maps.Keys(r.Run.Tallies)) {
		t := r.Run.Tallies[destination]
		if sum := t.Pending + t.Sent + t.Parked + t.Discarded; sum != t.Inserted {
			against.add("%s: %d pending + %d sent + %d parked + %d discarded = %d, not %d",
				destination, t.Pending, t.Sent, t.Parked, t.Discarded, sum, t.Inserted)
		}
		if t.Inserted != found.inserted[destination] {
			against.add("%s: the product has %d messages, the ledger %d", destination, t.Inserted, found.inserted[destination])
		}
		if t.Sent > found.received[destination] {
			against.add("%s: the product says that %d were sent, and %d have come", destination, t.Sent, found.received[destination])
		}
	}
	discarded := int64(0)
	for _, m := range slices.SortedFunc(maps.Values(l.dead), byID) {
		if m.State != record.StateDiscarded {
			continue
		}
		discarded++
		if m.Actor == "" {
			against.add("%s was discarded, and nobody knows by whom", m.ID)
		}
	}
	reason := ""
	for _, destination := range slices.Sorted(maps.Keys(l.destinations)) {
		if _, ok := r.Run.Tallies[destination]; !ok {
			reason = join(reason, "no tally of "+destination)
		}
	}
	note := fmt.Sprintf("%d dead letters, %d of them discarded", len(l.dead), discarded)
	return against.judge(id, name, budget, note).unless(reason)
}

func byID(a, b *undelivered) int {
	if a.ID < b.ID {
		return -1
	}
	return 1
}
