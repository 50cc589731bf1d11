// Package retry decides when and how often something that has failed is tried again. It has no clock and no randomness of its
// own: callers hand both in.
package retry

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/postrider/postrider"
)

// Policy says how often something is tried, and after which pauses. Where it is used its zero fields have defaults, which
// are documented there.
type Policy struct {
	// First is the pause after the first failed attempt. Each further pause is twice the one before.
	First time.Duration
	// Most is the longest pause, its random part included.
	Most time.Duration
	// Pauses are the pauses one by one, instead of First and Most, and have no random part. The last one is repeated if there
	// are more attempts.
	Pauses []time.Duration
	// Attempts is how often something is tried in all, the first time included; [Forever] sets no limit. With Pauses it
	// defaults to one more than there are.
	Attempts int
	// MaxAge is how long after the first failure something is still tried, whether its attempts count or not. 0 sets no
	// limit.
	MaxAge time.Duration
}

// Forever as a number of attempts means that there is no limit.
const Forever = -1

// maxPauses is the largest number of pauses in a list.
const maxPauses = 100

// Or returns the policy with the defaults of d where p says nothing. Defaults give way to what is said: a First above the
// default of Most is the longest pause too.
func (p Policy) Or(d Policy) Policy {
	p.MaxAge = cmp.Or(p.MaxAge, d.MaxAge)
	if len(p.Pauses) > 0 {
		if d.Attempts > 0 { // otherwise there is no limit here
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

// Validate reports everything that is wrong with the policy.
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
			wrong("Pauses has %v: want longer pauses", d)
		}
	}
	return errs
}

// ValidateForever reports everything that is wrong with a policy for what is tried until it succeeds.
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

// Pause returns the pause after so many failed attempts. Random is from [0, 1) and adds up to half of the pause, within the
// longest one: nobody comes back earlier than agreed, or later than Most.
func (p Policy) Pause(failed int, random float64) time.Duration {
	failed = max(failed, 1)
	if n := len(p.Pauses); n > 0 {
		return p.Pauses[min(failed, n)-1]
	}
	d := p.Most
	if shift := failed - 1; shift < 62 && p.First <= p.Most>>shift {
		d = p.First << shift
	}
	return p.spread(d, random)
}

// Longest returns the longest pause.
func (p Policy) Longest() time.Duration {
	longest := p.Most
	for _, d := range p.Pauses {
		longest = max(longest, d)
	}
	return longest
}

// Grow returns the pause of something that has waited for so long and is not to blame: about as long again, within the bounds of
// the policy. So pauses grow, and nothing has to be counted.
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

// spread adds the random part of a pause.
func (p Policy) spread(d time.Duration, random float64) time.Duration {
	return d + min(time.Duration(random*float64(d/2)), p.Most-d)
}

// Failure is an attempt that has failed.
type Failure struct {
	Err error
	// Attempts is how many have failed before and count.
	Attempts int
	// Age is how long ago the first one has failed, of those that count and those that do not.
	Age time.Duration
	// Waited is what the pauses of failures that do not count grow with; see [Policy.Grow].
	Waited time.Duration
}

// Decision is what follows from a [Failure].
type Decision struct {
	GiveUp   bool          // there is no further attempt
	Attempts int           // that have failed and count
	Pause    time.Duration // before the next attempt
}

// longestDelay bounds what an error may ask for: whoever is confused about time must not stop something for good.
const longestDelay = 24 * time.Hour

// Decide says what follows from a failure. One marked [postrider.Permanent] is the last. One marked [postrider.Unavailable] does not
// count, because it would have happened to any other. An error can ask for a longer pause; see [postrider.RetryAfter].
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
