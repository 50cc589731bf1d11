package shard

import (
	"time"

	"github.com/postrider/postrider"
)

// slowCall is the maximum desirable duration of a call. A slower destination gets fewer messages
// per call, so that messages with a priority wait less.
const slowCall = 200 * time.Millisecond

// pace controls the size and the time of calls for the window.
type pace struct {
	limit     int // maximum number of messages in a call
	call      []postrider.Message
	began     time.Time // start of the call
	failures  int       // calls in a row that confirmed nothing
	notBefore time.Time // no call before
	requested time.Time // not even to other names before; from RetryAfter
}

// fit adapts the limit to the duration of the last call, which had size messages.
func (p *pace) fit(now time.Time, size, most int) {
	switch took := now.Sub(p.began); {
	case took > slowCall:
		p.limit = max(p.limit/2, 1)
	case size == p.limit && took < slowCall/4:
		p.limit = min(p.limit*2, most)
	}
}

// backOff delays the next call, longer after each failure, and at least by the requested duration.
func (p *pace) backOff(now time.Time, retry *Retry, requested time.Duration) {
	p.failures++
	p.requested = now.Add(requested)
	p.notBefore = later(now.Add(retry.after(p.failures)), p.requested)
}

// resume ends a backoff early, unless the destination requested it. The next backoff does not get
// longer because of it.
func (p *pace) resume(now time.Time) {
	if !now.Before(p.requested) {
		p.notBefore = time.Time{}
		p.failures = max(p.failures-1, 0)
	}
}
