package shard

import (
	"time"

	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/store/feeds"
)

// Retry holds the retry policies.
type Retry struct {
	Outage  retry.Policy   // for outages; only its delays are used
	Message retry.Policy   // for messages that fail by themselves
	Random  func() float64 // from [0, 1)
}

// after returns the backoff after n consecutive failures of an outage.
func (r *Retry) after(n int) time.Duration { return r.Outage.Pause(n, r.Random()) }

// decide returns the status and the delay of a message that has failed by itself in so many
// attempts. age is the time since it was deferred.
func (r *Retry) decide(attempts int, age time.Duration, err error) (feeds.Status, time.Duration) {
	if attempts >= r.Message.Attempts || r.old(age) {
		return feeds.StatusDead, 0
	}
	return feeds.StatusRetry, max(r.Message.Pause(attempts, r.Random()), RetryAfter(err))
}

// old reports whether a message of that age has reached MaxAge.
func (r *Retry) old(age time.Duration) bool { return r.Message.MaxAge > 0 && age >= r.Message.MaxAge }

// waiting returns the delay of a message that waits without counted attempts: about as long as it
// has been deferred already, up to four times the maximum of an outage. So the delay grows without
// a counter.
func (r *Retry) waiting(deferred time.Duration, err error) time.Duration {
	p := retry.Policy{First: r.Outage.Pause(1, 0), Most: 4 * r.Outage.Longest()}
	return max(p.Grow(deferred, r.Random()), RetryAfter(err))
}

// longestRetryAfter limits the delay that an error may request: a wrong value must not stop a key
// for long.
const longestRetryAfter = 5 * time.Minute

// RetryAfter returns the delay that the destination requested, for instance in a Retry-After
// header.
func RetryAfter(err error) time.Duration { return min(retry.DelayOf(err), longestRetryAfter) }

// earlier returns the earlier of two times; the zero time means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
