// Package retry implements retry policies: when and how often to retry a failed operation. It has
// no clock and no source of randomness; callers pass both in.
package retry

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/postrider/postrider"
)

// Policy configures retries. Each user of a Policy documents the defaults of zero fields.
type Policy struct {
	// First is the backoff after the first failed attempt. It doubles with each further one.
	First time.Duration
	// Most is the maximum backoff, including its random part.
	Most time.Duration
	// Pauses lists the backoff of each attempt, instead of First and Most, without a random part.
	// The last one repeats if there are more attempts.
	Pauses []time.Duration
	// Attempts is the total number of attempts, including the first; [Forever] sets no limit. With
	// Pauses it defaults to one more than their number.
	Attempts int
	// MaxAge ends retries this long after the first failure, whether or not the attempts count. 0
	// sets no limit.
	MaxAge time.Duration
}

// Forever is a number of attempts without a limit.
const Forever = -1

// maxPauses is the maximum length of Policy.Pauses.
const maxPauses = 100

// Or returns p with the zero fields set from d. A default never contradicts an explicit field: if
// p.First exceeds d.Most, for instance, it also becomes Most.
func (p Policy) Or(d Policy) Policy {
	p.MaxAge = cmp.Or(p.MaxAge, d.MaxAge)
	if len(p.Pauses) > 0 {
		if d.Attempts > 0 { // otherwise the user of the policy retries without limit
			p.Attempts = cmp.Or(p.Attempts, len(p.Pauses)+1)
		}
		return p
	}
	p.Attempts = cmp.Or(p.Attempts, d.Attempts)
	if p.First == 0 {
		p.First = d.First
		if p.Most > 0 {
			p.First = min(d.First, p.Most)
		}
	}
	p.Most = cmp.Or(p.Most, max(d.Most, p.First))
	return p
}

// Validate returns all errors of the policy, joined.
func (p Policy) Validate() error { return errors.Join(p.mistakes()...) }

func (p Policy) mistakes() (errs []error) {
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for _, f := range []struct {
		name  string
		value time.Duration
	}{{"First", p.First}, {"Most", p.Most}, {"MaxAge", p.MaxAge}} {
		if f.value < 0 {
			wrong("%s is negative: %v", f.name, f.value)
		}
	}
	if p.Attempts < Forever {
		wrong("Attempts is %d: want at least 1, or %d for no limit", p.Attempts, Forever)
	}
	switch {
	case len(p.Pauses) > 0 && (p.First != 0 || p.Most != 0):
		wrong("Pauses (%v) contradicts First (%v) and Most (%v): want one or the other", p.Pauses, p.First, p.Most)
	case p.First > p.Most && p.Most > 0:
		wrong("First (%v) is longer than Most (%v)", p.First, p.Most)
	}
	if len(p.Pauses) > maxPauses {
		wrong("Pauses has %d elements: want at most %d", len(p.Pauses), maxPauses)
	}
	for _, d := range p.Pauses {
		if d <= 0 {
			wrong("Pauses has %v: want positive durations", d)
		}
	}
	return errs
}

// ValidateForever is like Validate for operations that are retried until they succeed: Attempts and
// MaxAge must not be set.
func (p Policy) ValidateForever() error {
	errs := p.mistakes()
	if p.Attempts > 0 {
		errs = append(errs, fmt.Errorf("%s is %d: this is tried until it succeeds", "Attempts", p.Attempts))
	}
	if p.MaxAge > 0 {
		errs = append(errs, fmt.Errorf("MaxAge is %v: this is tried until it succeeds", p.MaxAge))
	}
	return errors.Join(errs...)
}

// Pause returns the backoff after the given number of failed attempts. random, from [0, 1), adds up
// to half of it, within Most.
func (p Policy) Pause(failed int, random float64) time.Duration {
	failed = max(failed, 1)
	if n := len(p.Pauses); n > 0 {
		return p.Pauses[min(failed, n)-1]
	}
	d := p.Most
	if shift := failed - 1; p.First <= p.Most>>shift { // 0 if it is shifted too far
		d = p.First << shift
	}
	return p.spread(d, random)
}

// Longest returns the maximum backoff.
func (p Policy) Longest() time.Duration {
	longest := p.Most
	for _, d := range p.Pauses {
		longest = max(longest, d)
	}
	return longest
}

// Grow returns the backoff after a failure that does not count as an attempt: about as long as the
// time waited so far, within the bounds of the policy. So the backoff grows without a counter.
func (p Policy) Grow(waited time.Duration, random float64) time.Duration {
	for _, d := range p.Pauses {
		if d >= waited {
			return d
		}
	}
	if n := len(p.Pauses); n > 0 {
		return p.Pauses[n-1]
	}
	return p.spread(min(max(waited, p.First), p.Most), random)
}

// spread adds the random part of a backoff.
func (p Policy) spread(d time.Duration, random float64) time.Duration {
	return d + min(time.Duration(random*float64(d/2)), p.Most-d)
}

// Failure describes a failed attempt.
type Failure struct {
	Err error
	// Attempts is the number of earlier failed attempts that count.
	Attempts int
	// Age is the time since the first failure, whether or not it counts.
	Age time.Duration
	// Waited is the time waited so far because of failures that do not count; see [Policy.Grow].
	Waited time.Duration
}

// Decision is the reaction to a [Failure].
type Decision struct {
	GiveUp   bool          // no further attempt
	Attempts int           // failed attempts that count, including this one
	Pause    time.Duration // before the next attempt
}

// longestDelay limits the delay that an error may request: a wrong value must not stop retries for
// good.
const longestDelay = 24 * time.Hour

// Decide returns the reaction to a failure. An error marked [postrider.Permanent] ends the
// attempts. One marked [postrider.Unavailable] does not count as an attempt, because any other
// message would have failed too. An error can request a longer backoff; see [postrider.RetryAfter].
func (p Policy) Decide(f Failure, random float64) Decision {
	d := Decision{Attempts: f.Attempts}
	class := postrider.ClassOf(f.Err)
	if class == postrider.ClassUnavailable {
		d.Pause = p.Grow(f.Waited, random)
	} else {
		d.Attempts++
		d.Pause = p.Pause(d.Attempts, random)
		d.GiveUp = class == postrider.ClassPermanent || p.Attempts > 0 && d.Attempts >= p.Attempts
	}
	d.GiveUp = d.GiveUp || p.MaxAge > 0 && f.Age >= p.MaxAge
	if d.GiveUp {
		d.Pause = 0
		return d
	}
	d.Pause = max(d.Pause, min(DelayOf(f.Err), longestDelay))
	return d
}

// DelayOf returns the retry delay of err or of an error that it wraps: that of [postrider.RetryAfter], or of any error with a
// method RetryAfter() time.Duration, such as one for an HTTP response. 0 means none.
func DelayOf(err error) time.Duration {
	var d interface{ RetryAfter() time.Duration }
	if errors.As(err, &d) {
		return d.RetryAfter()
	}
	return 0
}
