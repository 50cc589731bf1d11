package guard

import (
	"net/netip"
	"sync"
	"time"
)

// Limiter limits requests with a token bucket per client. It keeps a bounded number of buckets;
// further clients share one.
type Limiter struct {
	rate, burst float64
	most        int

	mu      sync.Mutex
	buckets map[netip.Addr]bucket
	rest    bucket
	swept   time.Time
}

type bucket struct {
	used float64 // tokens taken; 0 is a full bucket
	at   time.Time
}

// NewLimiter returns a limiter of rate requests per second, with bursts of burst, for at most most
// clients.
func NewLimiter(rate, burst float64, most int) *Limiter {
	return &Limiter{rate: rate, burst: burst, most: most, buckets: make(map[netip.Addr]bucket)}
}

// Take counts a request and returns 0 if it is within the limit. Otherwise it returns how long to
// wait, and does not count the request.
func (l *Limiter) Take(client netip.Addr, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	client = network(client)
	b, known := l.buckets[client]
	if !known && len(l.buckets) >= l.most && !l.sweep(now) {
		return l.take(&l.rest, now)
	}
	wait := l.take(&b, now)
	l.buckets[client] = b
	return wait
}

// Wait returns how long a client must wait until its next request, without counting one.
func (l *Limiter) Wait(client netip.Addr, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, known := l.buckets[network(client)]
	if !known && len(l.buckets) >= l.most {
		b = l.rest
	}
	b.used++ // b is a copy
	return l.over(l.now(b, now))
}

func (l *Limiter) take(b *bucket, now time.Time) time.Duration {
	next := l.now(*b, now)
	next.used++
	if wait := l.over(next); wait > 0 {
		return wait
	}
	*b = next
	return 0
}

// now returns the bucket refilled for the time that has passed.
func (l *Limiter) now(b bucket, now time.Time) bucket {
	passed := now.Sub(b.at).Seconds()
	return bucket{used: max(0, b.used-max(0, passed)*l.rate), at: now}
}

func (l *Limiter) over(b bucket) time.Duration {
	if b.used <= l.burst {
		return 0
	}
	return max(time.Millisecond, time.Duration((b.used-l.burst)/l.rate*float64(time.Second)))
}

// sweep removes clients with full buckets, and reports whether there is room. It runs at most once
// a second, because it visits all clients.
func (l *Limiter) sweep(now time.Time) bool {
	if now.Sub(l.swept) >= time.Second {
		l.swept = now
		for client, b := range l.buckets {
			if l.now(b, now).used == 0 {
				delete(l.buckets, client)
			}
		}
	}
	return len(l.buckets) < l.most
}

// network returns the network that one client is assumed to control: for IPv6 the /64, the smallest
// that customers get.
func network(ip netip.Addr) netip.Addr {
	if ip.Is6() && !ip.Is4In6() {
		if p, err := ip.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return ip
}
