package shard

import (
	"time"

	"github.com/postrider/postrider"
)

// slowCall is the longest that a call should take. A slow destination gets fewer messages at a time: what is to overtake
// waits less.
const slowCall = 200 * time.Millisecond

// pace is how fast the messages of the window are sent.
type pace struct {
	limit    int // messages in a call
	call     []postrider.Message
	began    time.Time // the call
	failures int       // calls in a row that confirmed nothing
	calm     time.Time // no call before then,
	asked    time.Time // and before then not even one of other names
}

// fit adapts the number of messages in a call to what the last one, of so many, took.
func (p *pace) fit(now time.Time, size, most int) {
	switch took := now.Sub(p.began); {
	case took > slowCall:
		p.limit = max(p.limit/2, 1)
	case size == p.limit && took < slowCall/4:
		p.limit = min(p.limit*2, most)
	}
}

// rest has no call made for a while, longer after each failure, and for as long as was asked for at least.
func (p *pace) rest(now time.Time, retry *Retry, asked time.Duration) {
	p.failures++
	p.asked = now.Add(asked)
	p.calm = later(now.Add(retry.after(p.failures)), p.asked)
}

// resume ends a rest early, unless it was asked for. The next one is no longer for it.
func (p *pace) resume(now time.Time) {
	if !now.Before(p.asked) {
		p.calm = time.Time{}
		p.failures = max(p.failures-1, 0)
	}
}
