package lease

import "time"

// This file holds decisions only: no clock, goroutine, lock or I/O. Times are passed in as
// arguments.

// Sight is the state of a lease as the broker reports it.
type Sight struct {
	// Free means that no other process owns it: it was released, never taken, or the broker has
	// expired it.
	Free bool
	// Version changes with each renewal. It is empty if the broker itself expires a lease that is
	// not renewed.
	Version string
	// Length is the length of the owner's lease, if there is a Version. Processes of a group may
	// have different configurations, for example during a rolling update; the longer length
	// applies.
	Length time.Duration
}

// watch is the state of a process that stands by.
type watch struct {
	length time.Duration
	seen   Sight
	since  time.Time // when seen was first observed
}

// looked records an answer that has just arrived, and reports whether the lease may be taken.
//
// An owner starts the lease time before it sends a renewal, so an observer that sees the new
// version always starts later. If the version has not changed for the length of the lease on our
// clock, the lease has expired on the owner's clock too.
func (w *watch) looked(s Sight, now time.Time) bool {
	if s != w.seen || w.since.IsZero() {
		w.seen, w.since = s, now
	}
	return s.Free || s.Version != "" && now.Sub(w.since) >= max(w.length, s.Length)
}

// grant is the time for which a process owns the lease.
type grant struct {
	length time.Duration
	until  time.Time // nothing may start from then on
	over   bool
}

// margin allows for clocks that run at different speeds, and for the time between reading the clock
// and the call that follows.
func (g *grant) margin() time.Duration { return min(g.length/10, time.Second) }

// extend records that the broker has granted the lease: the request was sent at sent, and the
// answer is here now. It returns false if the lease is over. A lease that was over once stays over,
// whatever the broker says: messages may have been skipped meanwhile, and continuing would leave
// them out.
func (g *grant) extend(sent, now time.Time) bool {
	if !g.until.IsZero() && !g.holds(now) {
		return false
	}
	g.until = sent.Add(g.length - g.margin())
	return g.holds(now)
}

// holds reports whether work may start now. Once it has returned false, it never returns true
// again.
func (g *grant) holds(now time.Time) bool {
	g.over = g.over || !now.Before(g.until)
	return !g.over
}

// left returns how long the lease stays valid without another renewal.
func (g *grant) left(now time.Time) time.Duration {
	if !g.holds(now) {
		return 0
	}
	return g.until.Sub(now)
}
