package oracle

import (
	"fmt"
	"time"

	"github.com/postrider/postrider/test/proof/campaign/record"
)

// A tenant that floods a destination must not hold up others (I9). Their transactions stay open for
// up to a few seconds, which counts too, because a message is dated when it is written.
const (
	longestWait = 10 * time.Second
	floodReach  = 5 * time.Second // after the heal, while the flood is being sent
)

// floods reports whether a message was written beside a flood of another tenant, while nothing else
// could hold it up.
func (f *faults) floods(i record.Intent) bool {
	flood := f.find(i.At, floodReach, func(s *span) bool { return s.Tenant != "" && s.Target == i.Destination })
	return flood != nil && flood.Tenant != i.Tenant && !f.others(i.At, i.Destination)
}

// others reports whether anything but a flood may have held up messages of a destination.
func (f *faults) others(at time.Time, destination string) bool {
	return f.find(at, reach, func(s *span) bool { return s.Tenant == "" && (s.hinders() || s.Target == destination) }) != nil
}

// waits are how long messages beside a flood took.
type waits struct {
	count   int64
	longest time.Duration
	long    evidence
}

func (w *waits) add(x record.Receipt, written time.Time, f *faults) {
	if f.others(x.At, x.Destination) {
		return
	}
	took := x.At.Sub(written)
	w.count++
	w.longest = max(w.longest, took)
	if took > longestWait {
		w.long.add("%s %s, written at %s, waited for %.1f s beside the flood of another tenant", x.Destination, x.Key, clock(written), took.Seconds())
	}
}

func (w *waits) merge(other waits) {
	w.count += other.count
	w.longest = max(w.longest, other.longest)
	w.long.merge(other.long)
}

// judge adds the result to that of recoveries.
func (w *waits) judge(f Finding) Finding {
	if w.count == 0 {
		return f
	}
	f.Note = join(f.Note, fmt.Sprintf("%d messages beside floods of other tenants took %.1f s at most", w.count, w.longest.Seconds()))
	if w.long.count > 0 {
		f.State, f.Examples = Broken, append(f.Examples, w.long.examples...)
	}
	return f
}
