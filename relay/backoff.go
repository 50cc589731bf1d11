package relay

import (
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/postrider/postrider/retry"
)

// backoff returns the delays of a policy, one after each consecutive failure.
type backoff struct {
	policy retry.Policy
	most   time.Duration // a lower limit than the policy's; 0 for none
	n      int
}

func (b *backoff) next() time.Duration {
	b.n++
	d := b.policy.Pause(b.n, rand.Float64())
	if b.most > 0 {
		d = min(d, b.most)
	}
	return d
}

func (b *backoff) reset() { b.n = 0 }

func jitter(d time.Duration) time.Duration { return d + rand.N(d/2+1) }

// quiet is the minimum time between two log lines about the same outage.
const quiet = 30 * time.Second

// outage logs failures of one kind: the first at once, then at most one line every 30 s, then the
// recovery. It is not safe for concurrent use.
type outage struct {
	log     *slog.Logger
	what    string
	failing bool
	shown   bool // a line about this outage was logged
	since   time.Time
	last    time.Time // the last line
	count   int       // failures since the last line
}

func (o *outage) fail(err error) {
	now := time.Now()
	o.count++
	if !o.failing {
		o.failing, o.since = true, now
	}
	if !o.last.IsZero() && now.Sub(o.last) < quiet {
		return
	}
	//nolint:sloglint // one of few texts
	o.log.Warn("relay: "+o.what+" fails, trying again", "err", err, "failures", o.count, "for", now.Sub(o.since))
	o.last, o.count, o.shown = now, 0, true
}

func (o *outage) ok() {
	if !o.failing {
		return
	}
	if o.shown {
		o.log.Info("relay: "+o.what+" has recovered", "after", time.Since(o.since)) //nolint:sloglint // one of few texts
	}
	o.failing, o.shown = false, false
}
