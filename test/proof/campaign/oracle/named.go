package oracle

import (
	"fmt"
	"time"

	"github.com/postrider/postrider/test/proof/campaign/record"
)

// The budget of I13. A fault that is healed sooner than longEnough may end before it is named.
const (
	longestSilence = 10 * time.Second
	longEnough     = 12 * time.Second
)

// checkNamed checks how soon an operator could read why a destination accepts nothing (I13). A fault
// during which the database, the relays, the producers or the same destination are also hurt is not
// judged: nobody may be there to observe it.
func checkNamed(f *faults) Finding {
	const id, name = "I13", "a cause is named (longest, s)"
	budget := fmt.Sprintf("≤ %v", longestSilence.Seconds())
	var found evidence
	var longest time.Duration
	judged, all := 0, 0
	for _, s := range f.spans {
		if s.Refuses == "" || s.heal.IsZero() {
			continue
		}
		all++
		silence := s.silence
		if !s.named {
			silence = s.heal.Sub(s.ready())
			if silence < longEnough {
				continue
			}
		}
		if f.disturbed(s, s.ready().Add(silence)) {
			continue
		}
		judged++
		longest = max(longest, silence)
		if silence > longestSilence {
			found.add("%s (fault %d): from %s on %s accepted nothing, and for %.1f s no status or doctor said why",
				s.Kind, s.Fault, clock(s.ready()), s.Refuses, silence.Seconds())
		}
	}
	reason := ""
	if judged == 0 {
		reason = "no destination accepted nothing for long enough while everything else was well"
	}
	finding := found.judge(id, name, budget, fmt.Sprintf("%d of %d such faults were judged", judged, all)).unless(reason)
	finding.Figure = longest.Seconds()
	return finding
}

// disturbed reports whether another fault may hide this one until a time.
func (f *faults) disturbed(s *span, until time.Time) bool {
	for _, other := range f.spans {
		if other != s && other.Touch(record.Database, record.Relay, record.Producer, s.Refuses) &&
			other.At.Before(until) && (other.heal.IsZero() || s.At.Sub(other.heal) < sampleReach) {
			return true
		}
	}
	return false
}
