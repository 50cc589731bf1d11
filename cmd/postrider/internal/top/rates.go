package top

import "time"

const (
	// rateWindow is the period over which rates are averaged, because relays record their progress
	// in steps.
	rateWindow = 5 * time.Second
	// countedTo is the number of pending messages up to which a store counts.
	countedTo = 1_000_000
)

// rates are in messages a second, negative if unknown.
type rates struct{ in, out float64 }

// rates estimates the rates of a feed: numbers that the log has assigned count as enqueued, and
// those minus the growth of the backlog as delivered.
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
	// An empty log may have assigned numbers before, and a restored one may assign them again.
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

// lags returns the highest lag of a feed in each of n parts of the last minute, oldest first,
// negative if unknown.
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
