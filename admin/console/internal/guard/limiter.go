package guard

import (
	"net/netip"
	"sync"
	"time"
)

// Limiter is a bucket of tokens for each client. It remembers a bounded number of them; when there are more, the rest share
// one bucket.
type Limiter struct {
	rate, burst float64
	most        int

	mu      sync.Mutex
	buckets map[netip.Addr]bucket
	rest    bucket
	swept   time.Time
}

type bucket struct {
	used float64 // of the burst; 0 is a full bucket
	at   time.Time
}

// NewLimiter returns a limiter of rate requests a second, and burst at once, for most clients.
func NewLimiter(rate, burst float64, most int) *Limiter {
	return &Limiter{rate: rate, burst: burst, most: most, buckets: make(map[netip.Addr]bucket)}
}

// Take counts a request. It returns 0 if it is within the limit, and otherwise how long to wait; then it is not counted.
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

// Wait returns how long a client has to wait until its next request, which it does not count.
func (l *Limiter) Wait(client netip.Addr, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, known := l.buckets[network(client)]
	if !known && len(l.buckets) >= l.most {
		b = l.rest
	}
	b.used++ // of the copy
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

// now is a bucket after the time that has passed.
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

// sweep forgets clients whose buckets are full again, and reports whether there is room. It looks at all of them, so it does
// that once a second at most.
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

// network is what one client can be assumed to hold: the whole of the smallest network that IPv6 gives to a customer.
func network(ip netip.Addr) netip.Addr {
	if ip.Is6() && !ip.Is4In6() {
		if p, err := ip.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return ip
}
