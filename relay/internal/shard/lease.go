package shard

import "time"

// lease is the right to send the messages of the shard.
type lease struct {
	length  time.Duration
	timeout time.Duration // of one call
	renewed time.Time     // when the last call that renewed it was sent; zero if there was none
}

// margin is the part of a lease that is never used: the end of every call is planned for that much before its end.
func (l *lease) margin() time.Duration { return l.length / 10 }

// Age returns how long ago a lease was renewed. The monotonic clock stands still while a machine sleeps, and the wall
// clock can be set back: the one that has gone further counts.
func Age(renewed, now time.Time) time.Duration {
	return max(now.Sub(renewed), now.Round(0).Sub(renewed.Round(0)))
}

// safeUntil returns until when messages may be sent. A call is only begun with a margin of time for it, lest it is cut and
// its outcome unknown: where too little of the lease is left, it returns false.
func (l *lease) safeUntil(now time.Time) (deadline time.Time, ok bool) {
	left := l.length - l.margin() - Age(l.renewed, now)
	return now.Add(min(l.timeout, left)), left > l.margin()
}
