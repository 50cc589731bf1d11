package shard

import "time"

// lease is the right to send messages of the shard until it expires.
type lease struct {
	length  time.Duration
	timeout time.Duration // of one call
	renewed time.Time     // when the last call that renewed it was sent; zero if none
}

// margin is the unused end of a lease: every call is planned to end that long before the lease
// expires.
func (l *lease) margin() time.Duration { return l.length / 10 }

// Age returns the time since a lease was renewed. The monotonic clock stops while the machine is
// suspended, and the wall clock can be set back, so Age returns the larger of the two differences.
func Age(renewed, now time.Time) time.Duration {
	return max(now.Sub(renewed), now.Round(0).Sub(renewed.Round(0)))
}

// safeUntil returns the deadline for a call that begins now. It returns false if too little of the
// lease is left: such a call might be cancelled, which leaves its outcome unknown.
func (l *lease) safeUntil(now time.Time) (deadline time.Time, ok bool) {
	left := l.length - l.margin() - Age(l.renewed, now)
	return now.Add(min(l.timeout, left)), left > l.margin()
}
