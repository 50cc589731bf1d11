package plan

import "math"

// staff finds the smallest number of relays that can do the work while one of them, or a whole
// zone, is down. It may divide the databases among groups of relays, because each relay polls all
// databases that it serves, even idle ones.
func (m *Model) staff(p *Plan) {
	in := &p.Inputs
	best := 0
	for groups := 1; groups <= in.Databases; groups = max(groups+1, groups*5/4) {
		needed := m.needed(in, groups)
		if needed == 0 {
			continue
		}
		sharing := withSpare(needed, in.Zones)
		if total := groups * sharing; best == 0 || total < best {
			best = total
			p.Relays, p.Groups, p.Sharing, p.Needed = total, groups, sharing, needed
		}
	}
	if best == 0 { // not even the maximum is enough, as the ceilings show
		p.Groups, p.Needed = in.Databases, maxShare
		p.Sharing = withSpare(maxShare, in.Zones)
		p.Relays = p.Groups * p.Sharing
	}
	if in.Relays > 0 {
		p.Relays, p.Groups, p.Sharing = in.Relays, 1, in.Relays
		p.Needed = max(1, in.Relays-in.Relays/max(in.Zones, 1))
		if in.Zones == 1 {
			p.Needed = max(1, in.Relays-1)
		}
	}
}

// needed returns how many relays of a group must be running, or 0 if the maximum is not enough.
func (m *Model) needed(in *Inputs, groups int) int {
	for n := 1; n <= maxShare; n++ {
		if in.Shards > 0 && n > in.Shards {
			return 0
		}
		if m.busy(in, groups, n) <= in.Load*in.RelayCores && m.reads(in, n) <= in.Load {
			return n
		}
	}
	return 0
}

// busy returns the cores that each of n relays uses that share the databases of a group.
func (m *Model) busy(in *Inputs, groups, n int) float64 {
	served := math.Ceil(float64(in.Databases) / float64(groups))
	return served * float64(in.Destinations) * m.perMembership(in, in.Rate/float64(in.Databases)/float64(n))
}

// reads returns the rate of one relay relative to the highest measured rate of one relay on one
// database.
func (m *Model) reads(in *Inputs, n int) float64 {
	if m.reading == 0 {
		return 0
	}
	return in.Rate / float64(in.Databases) / float64(n) / m.reading
}

// withSpare returns the number of relays so that enough remain when a zone is lost or, with one
// zone, a relay.
func withSpare(needed, zones int) int {
	if zones == 1 {
		return needed + 1
	}
	return zones * ((needed + zones - 2) / (zones - 1))
}
