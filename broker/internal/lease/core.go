package lease

import "time"

// This file decides and does nothing else: no clock, goroutine, lock or I/O. Times come in as arguments.

// Sight is what a broker says of a lease.
type Sight struct {
	// Free means that nobody else has it: it was released, was never taken, or the broker has ended it.
	Free bool
	// Version changes with each renewal. It is empty where the broker itself ends a lease that is not renewed.
	Version string
	// Length is that of the owner's lease, with a Version. Processes of a group may be configured differently, as while an update is
	// under way; the longer one counts.
	Length time.Duration
}

// watch is a process that stands by.
type watch struct {
	length time.Duration
	seen   Sight
	since  time.Time // when seen was first seen
}

// looked takes note of an answer that has come now, and says whether the lease may be taken.
//
// An owner counts its lease from before it sends a renewal, so that whoever has seen the version has begun to count later. One
// that has not changed for the length of the lease, by our own clock, is over by the owner's.
func (w *watch) looked(s Sight, now time.Time) bool {
	if s != w.seen || w.since.IsZero() {
		w.seen, w.since = s, now
	}
	return s.Free || s.Version != "" && now.Sub(w.since) >= max(w.length, s.Length)
}

// grant is how long a process has the lease.
type grant struct {
	length time.Duration
	until  time.Time // nothing is begun from then on
	over   bool
}

// margin is kept for clocks that run at different speeds, and for the moment between a look at the clock and the call that follows it.
func (g *grant) margin() time.Duration { return min(g.length/10, time.Second) }

// extend takes note that the broker has granted the lease: it was asked at sent, and the answer is here now. It reports false if
// the lease is over. One that was over once stays so, whatever the broker says: something may have been refused for it meanwhile, and
// to go on would leave that out.
func (g *grant) extend(sent, now time.Time) bool {
	if !g.until.IsZero() && !g.holds(now) {
		return false
	}
	g.until = sent.Add(g.length - g.margin())
	return g.holds(now)
}

// holds says whether something may be begun now. Once it has said no, it never says yes again.
func (g *grant) holds(now time.Time) bool {
	g.over = g.over || !now.Before(g.until)
	return !g.over
}

// left is for how long the lease is ours without another renewal.
func (g *grant) left(now time.Time) time.Duration {
	if !g.holds(now) {
		return 0
	}
	return g.until.Sub(now)
}
