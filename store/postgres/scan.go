package postgres

import (
	"strconv"

	"github.com/postrider/postrider/store/feeds"
)

// mostLooked bounds how many sequence numbers one scan looks at.
const mostLooked = 20_000

// scan is one pass over the log, for shards at the same position. Most of the time, all shards are.
type scan struct {
	at      cursor
	upto    int64 // inside a window: the scan ends here
	look    int   // how many sequence numbers to look at
	owned   []*ownedShard
	demands []feeds.Demand
	byBase  map[int]int // from shard to the index in the slices above
}

// stand is what the shards of one scan have in common. A tenant's slice has a scan of its own.
type stand struct {
	s1, s2       string
	lo, last, hi int64
	tenant       string
	base         int  // only set for a slice
	few          bool // it wants few messages
}

func (l *ownedShard) stand() stand {
	c := &l.read
	s := stand{s1: c.from.snapshot, s2: c.to.snapshot, lo: c.from.lo, last: c.last, hi: c.hi, tenant: l.tenant}
	if l.tenant != "" {
		s.base = l.base
	}
	return s
}

// planScans groups demands into scans, in the order of the demands. A shard that wants far fewer
// messages than others gets its own scan: otherwise it would slow them down, or be cut at a
// position of its own. A scan that is behind other shards in the same window ends at their position,
// so that one scan can serve all of them from there. No scan goes beyond a stop.
func planScans(want []feeds.Demand, owned map[int]*ownedShard, shards int, at *stop) []*scan {
	byStand := make(map[stand]*scan)
	var scans []*scan
	most := 0
	for _, d := range want {
		most = max(most, d.Limit)
	}
	for _, d := range want {
		l := owned[d.Shard]
		if l == nil || d.Limit <= 0 || l.hasStopped(at) {
			continue
		}
		l.approach(at)
		where := l.stand()
		where.few = d.Limit < most/4
		s := byStand[where]
		if s == nil {
			s = &scan{at: l.read, upto: l.read.hi, look: d.Limit, byBase: make(map[int]int)}
			byStand[where] = s
			scans = append(scans, s)
		}
		s.byBase[l.base] = len(s.owned)
		s.owned = append(s.owned, l)
		s.demands = append(s.demands, d)
		s.look = min(s.look, d.Limit)
	}
	for _, s := range scans {
		// A shard gets only its share of the messages, and the shares differ.
		s.look = min(max(s.look*shards*7/8, 1), mostLooked)
		if !s.at.inside() {
			continue
		}
		for _, l := range owned {
			if c := &l.read; c.from.snapshot == s.at.from.snapshot && c.to.snapshot == s.at.to.snapshot && c.last > s.at.last {
				s.upto = min(s.upto, c.last)
			}
		}
	}
	return scans
}

// points returns the snapshots of the scans' cursors.
func points(scans []*scan) []point {
	var known []point
	for _, s := range scans {
		known = append(known, s.at.from)
		if s.at.inside() {
			known = append(known, s.at.to)
		}
	}
	return known
}

// appendTo adds the scan to the arguments of read_log.
func (s *scan) appendTo(a *scanArguments) {
	var bases array
	others := ""
	for _, l := range s.owned {
		bases.int(int64(l.base))
		if l.others != "" {
			if others != "" {
				others += ","
			}
			others += `"` + strconv.Itoa(l.base) + `":` + l.others
		}
	}
	if others != "" {
		others = "{" + others + "}"
	}
	a.bases.string(bases.String())
	a.tenants.string(s.owned[0].tenant)
	a.others.string(others)
	a.looks.int(int64(s.look))
	from := &s.at.from
	a.s1.snapshot(from.snapshot)
	a.lo.int(from.lo)
	a.starts.string(from.startsText())
	a.s2.snapshot(s.at.to.snapshot)
	a.last.int(s.at.last)
	a.upto.int(s.upto)
}

type scanArguments struct {
	bases, tenants, others, looks, s1, lo, starts, s2, last, upto array
}

func (a *scanArguments) values() [][]byte {
	all := []*array{&a.bases, &a.tenants, &a.others, &a.looks, &a.s1, &a.lo, &a.starts, &a.s2, &a.last, &a.upto}
	values := make([][]byte, len(all))
	for i, one := range all {
		values[i] = []byte(one.String())
	}
	return values
}

// startsText returns starts as the text of an array.
func (p *point) startsText() string {
	var starts array
	for _, seq := range p.starts {
		starts.int(seq)
	}
	return starts.String()
}
