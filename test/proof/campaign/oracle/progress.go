package oracle

import (
	"fmt"
	"time"

	"github.com/postrider/postrider/test/proof/campaign/record"
)

// longestStandstill is the budget of I14, in addition to the faults that touch a shard.
const longestStandstill = 60 * time.Second

// standing is a shard that has something to send.
type standing struct {
	position string
	since    time.Time // it has been there since then, and no fault has touched it
	told     bool
}

// checkProgress checks that nothing waits without a reason (I14): a deferred message has an error, or
// waits behind one that has; and a shard with pending messages advances.
func checkProgress(f *faults, samples []record.Sample) Finding {
	const id, name, budget = "I14", "messages and shards that wait without a cause", "0 for over 60 s"
	var found evidence
	asked, longest := 0, time.Duration(0)
	silent := map[string]bool{}
	stands := map[shard]*standing{}
	for _, s := range samples {
		if s.Waiting == nil {
			continue
		}
		asked++
		for _, text := range s.Waiting.Silent {
			if !silent[text] {
				found.add("at %s nothing said why this waited: %s", clock(s.At), text)
			}
			silent[text] = true
		}
		now := map[shard]*standing{}
		for _, one := range s.Waiting.Shards {
			key := shard{one.Feed, one.Number}
			stand := stands[key]
			if stand == nil || stand.position != one.Position {
				stand = &standing{position: one.Position, since: s.At}
			}
			stand.since = f.untouched(stand.since, s.At, one.Feed)
			waited := s.At.Sub(stand.since)
			longest = max(longest, waited)
			if waited > longestStandstill && !stand.told {
				stand.told = true
				found.add("%s/%d had messages to send, and did not advance from %s to %s, while no fault touched it",
					one.Feed, one.Number, clock(stand.since), clock(s.At))
			}
			now[key] = stand
		}
		stands = now
	}
	if asked < 2 {
		return notChecked(id, name, budget, "fewer than two samples of what waits")
	}
	return found.judge(id, name, budget, fmt.Sprintf("%d samples; the longest standstill of a shard %.0f s", asked, longest.Seconds()))
}

// untouched returns the later of a time and the end of the last fault until now that touches a
// destination, the database or the relays.
func (f *faults) untouched(since, now time.Time, destination string) time.Time {
	for _, s := range f.spans {
		switch {
		case s.At.After(now) || !s.Touch(record.Database, record.Relay, destination):
		case s.heal.IsZero() || s.heal.After(now):
			return now
		case s.heal.After(since):
			since = s.heal
		}
	}
	return since
}
