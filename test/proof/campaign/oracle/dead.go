package oracle

import (
	"fmt"
	"strings"

	"github.com/postrider/postrider/test/proof/campaign/record"
)

// crashes is in the error of a message that was given up because relays died while they sent it.
const crashes = "relays have died while they sent it"

// checkDead checks the dead letters that were seen during a run (I15): each has an error, and either
// its destination had to refuse it, or it was refused as often as it is tried, or relays that sent it
// were killed.
func checkDead(run record.Run, f *faults, samples []record.Sample) Finding {
	const id, name, budget = "I15", "dead letters that no rule explains", "0"
	if run.Attempts == 0 {
		return notChecked(id, name, budget, "run.json does not say how often messages are tried")
	}
	var found evidence
	asked, poison, killed := 0, 0, 0
	seen := map[string]bool{}
	for _, s := range samples {
		if s.Waiting == nil {
			continue
		}
		asked++
		for _, d := range s.Waiting.Dead {
			of := d.Feed + " " + d.ID
			if seen[of] {
				continue
			}
			seen[of] = true
			if d.Poison {
				poison++
			}
			switch {
			case d.Error == "":
				found.add("%s of %s was dead at %s, without an error", d.ID, d.Feed, clock(s.At))
			case d.Poison || d.Attempts >= run.Attempts:
			case strings.Contains(d.Error, crashes) && f.find(s.At, longestRecovery, func(s *span) bool { return s.Touch(record.Relay) }) != nil:
				killed++
			default:
				found.add("%s of %s was dead at %s after %d attempts of %d: %s", d.ID, d.Feed, clock(s.At), d.Attempts, run.Attempts, d.Error)
			}
		}
	}
	if asked == 0 {
		return notChecked(id, name, budget, "no sample of dead letters")
	}
	return found.judge(id, name, budget, fmt.Sprintf("%d dead letters were seen: %d were poison, with %d relays were killed", len(seen), poison, killed))
}
