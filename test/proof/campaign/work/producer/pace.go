package producer

import (
	"context"
	"sync"
	"time"
)

// pace spreads messages evenly over time. It does not catch up after a delay.
type pace struct {
	rate float64 // per second

	mu   sync.Mutex
	next time.Time
}

// wait returns when n messages are due, or false when ctx ends.
func (p *pace) wait(ctx context.Context, n int) bool {
	p.mu.Lock()
	now := time.Now()
	if p.next.Before(now.Add(-time.Second)) {
		p.next = now
	}
	at := p.next
	p.next = p.next.Add(time.Duration(float64(n) / p.rate * float64(time.Second)))
	p.mu.Unlock()
	return sleep(ctx, time.Until(at))
}

// sleep returns false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
