package oracle

import (
	"fmt"
	"time"

	"github.com/postrider/postrider/test/proof/campaign/record"
)

// The budget of I10. A session that a fault has cut off or suspended cannot end its transaction, so
// samples during a fault, and in the next few seconds, are ignored.
const (
	longestIdle  = time.Second
	sampleReach  = 5 * time.Second
	lockWaitRate = 0.001
)

// checkDatabase looks for deadlocks, for open transactions of ours, and for producers that wait for
// relays (I10).
func checkDatabase(f *faults, samples []record.Sample) Finding {
	const id, name, budget = "I10", "deadlocks, idle transactions, lock waits", "0 / 0 over 1 s / 0.1 % of samples"
	var found, waits evidence
	asked, settled := 0, 0
	var before *record.DatabaseSample
	for _, s := range samples {
		d := s.Database
		if d == nil {
			continue
		}
		asked++
		if before != nil {
			// A server that has crashed, or whose statistics were reset, counts from 0 again.
			since := before.Deadlocks
			if d.Deadlocks < since {
				since = 0
			}
			found.times(d.Deadlocks-since, "%d deadlocks before %s", d.Deadlocks-since, clock(s.At))
		}
		before = d
		if f.find(s.At, sampleReach, func(s *span) bool { return len(s.Touches) > 0 }) != nil {
			continue
		}
		settled++
		if d.IdleSeconds > longestIdle.Seconds() {
			found.add("at %s a session of ours had been idle in a transaction for %.1f s, and no fault was near", clock(s.At), d.IdleSeconds)
		}
		if d.LockWaits > 0 {
			waits.add("at %s %d producers waited for a lock of a relay, and no fault was near", clock(s.At), d.LockWaits)
		}
	}
	if asked < 2 {
		return notChecked(id, name, budget, "fewer than two samples of the database")
	}
	note := fmt.Sprintf("deadlocks in %d samples; sessions and locks in the %d of them with no fault near", asked, settled)
	if float64(waits.count) > lockWaitRate*float64(settled) {
		found.merge(waits)
	}
	reason := ""
	if settled == 0 {
		reason = "no sample of the database without a fault near"
	}
	return found.judge(id, name, budget, note).unless(reason)
}
