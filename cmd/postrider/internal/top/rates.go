package top

import "time"

const (
	// rateWindow is over how long rates are averaged: relays record their progress in steps.
	rateWindow = 5 * time.Second
	// countedTo is where a store may stop counting what is pending.
	countedTo = 1_000_000
)

// rates are messages a second, negative where not known.
type rates struct{ in, out float64 }

// rates estimates how fast a feed moves: numbers that the log has given away came in, and what came in and does not wait
// has gone out.
func (s *State) rates(f *Feed) rates {
	unknown := rates{-1, -1}
	if len(s.past) < 2 {
		return unknown
	}
	base, at := &s.past[len(s.past)-2], len(s.past)-2
	for at > 0 && s.At.Sub(s.past[at-1].At) <= rateWindow {
		at--
		if find(&s.past[at], f.Name) != nil && s.past[at].Last > 0 {
			base = &s.past[at]
		}
	}
	before, took := find(base, f.Name), s.At.Sub(base.At).Seconds()
	// A log that was empty may have given numbers away before, and one that was restored may give them away again.
	if before == nil || base.Last == 0 || s.Last < base.Last || took <= 0 {
		return unknown
	}
	came := float64(s.Last - base.Last)
	r := rates{in: came / took, out: max(0, came-float64(f.Pending-before.Pending)) / took}
	if f.Pending >= countedTo || before.Pending >= countedTo {
		r.out = -1
	}
	return r
}

// lags returns the highest lag of a feed in each of n parts of the last minute, oldest first, negative where not known.
func (s *State) lags(name string, n int) []time.Duration {
	lags := make([]time.Duration, n)
	for i := range lags {
		lags[i] = -1
	}
	for i := range s.past {
		p := &s.past[i]
		if f := find(p, name); f != nil {
			cell := n - 1 - int(s.At.Sub(p.At)*time.Duration(n)/(remembered+1))
			lags[cell] = max(lags[cell], f.Lag(p.At))
		}
	}
	return lags
}

func find(s *Snapshot, name string) *Feed {
	for i := range s.Feeds {
		if s.Feeds[i].Name == name {
			return &s.Feeds[i]
		}
	}
	return nil
}
