package live

import (
	"slices"
	"time"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/admin/console/internal/source"
)

// counts are counters from which rates are computed.
type counts struct {
	at        time.Time
	enqueued  int64
	failed    int64
	relays    bool // this process has relays, so failed is known
	delivered map[string]delivered
}

// delivered is the progress of a feed.
type delivered struct {
	published int64 // by the relays of this process
	local     bool  // no other process serves it
	left      int64 // undelivered messages, including deferred ones
}

func count(s *admin.Standing, relays []source.Relay) counts {
	c := counts{at: s.At, enqueued: s.Enqueued, relays: len(relays) > 0, delivered: make(map[string]delivered)}
	for i := range s.Feeds {
		f := &s.Feeds[i]
		d := delivered{left: f.Pending.N, local: len(f.Members) > 0}
		if a := &f.Deferred; a.Exact {
			d.left += int64(a.Scheduled + a.Retry + a.Waiting + a.Dead + a.Parked)
		}
		for _, m := range f.Members {
			d.local = d.local && slices.ContainsFunc(relays, func(r source.Relay) bool { return r.Feed == f.Name && r.Name == m.Name })
		}
		c.delivered[f.Name] = d
	}
	for i := range relays {
		r := &relays[i]
		d := c.delivered[r.Feed]
		d.published += r.Stats.Published
		c.delivered[r.Feed] = d
		c.failed += r.Stats.Failed
	}
	return c
}

// rates are in messages per second.
type rates struct {
	enqueued, published, failed Value
	feeds                       map[string]Value // published
}

// since returns the rates since an earlier sample. For feeds that only relays of this process serve
// it uses their exact counters. For others it estimates: messages enqueued minus the growth of the
// backlog.
func (c *counts) since(before *counts) rates {
	r := rates{Unknown(), Unknown(), Unknown(), make(map[string]Value)}
	seconds := 0.0
	if before != nil {
		seconds = c.at.Sub(before.at).Seconds()
	}
	if seconds <= 0 {
		return r
	}
	perSecond := func(n int64) Value { return Value(float64(max(0, n)) / seconds) }
	r.enqueued = perSecond(c.enqueued - before.enqueued)
	if c.relays && before.relays {
		r.failed = perSecond(c.failed - before.failed)
	}
	for name, now := range c.delivered {
		then, known := before.delivered[name]
		if !known {
			continue
		}
		rate := perSecond(c.enqueued - before.enqueued - (now.left - then.left))
		if now.local && then.local && now.published >= then.published {
			rate = perSecond(now.published - then.published)
		}
		r.feeds[name] = rate
		if !r.published.Known() {
			r.published = 0
		}
		r.published += rate
	}
	return r
}
