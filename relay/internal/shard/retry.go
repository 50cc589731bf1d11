package shard

import (
	"time"

	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/store/feeds"
)

// Retry says how failures are repeated.
type Retry struct {
	Outage  retry.Policy   // failures that are nobody's fault; only its pauses matter
	Message retry.Policy   // failures of a message's own
	Random  func() float64 // from [0, 1)
}

// after returns the pause after n failures in a row that are nobody's fault.
func (r *Retry) after(n int) time.Duration { return r.Outage.Pause(n, r.Random()) }

// verdict decides what becomes of a message that has failed by its own fault in so many attempts, the first of them that
// long ago.
func (r *Retry) verdict(attempts int, age time.Duration, err error) (feeds.Status, time.Duration) {
	if attempts >= r.Message.Attempts || r.old(age) {
		return feeds.StatusDead, 0
	}
	return feeds.StatusRetry, max(r.Message.Pause(attempts, r.Random()), RetryAfter(err))
}

// old reports whether a message that failed for the first time that long ago is not to be tried again.
func (r *Retry) old(age time.Duration) bool { return r.Message.MaxAge > 0 && age >= r.Message.MaxAge }

// waiting returns the pause of a message that has been deferred for some time and is not to blame: about as long again, within
// four times the bounds of an outage, so that nothing has to be counted.
func (r *Retry) waiting(deferred time.Duration, err error) time.Duration {
	p := retry.Policy{First: r.Outage.Pause(1, 0), Most: 4 * r.Outage.Longest()}
	return max(p.Grow(deferred, r.Random()), RetryAfter(err))
}

// longestRetryAfter bounds what an error may ask for: a destination that is confused about time must not stop a key for good.
const longestRetryAfter = 5 * time.Minute

// RetryAfter returns the delay that the destination has requested, such as in the header Retry-After.
func RetryAfter(err error) time.Duration { return min(retry.DelayOf(err), longestRetryAfter) }

// earlier returns the earlier one of two times, of which the zero time is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// later returns the later one of two times.
func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
