package producer

import (
	"context"
	"sync"
	"time"

	"github.com/postrider/postrider/internal/sleep"
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
	return sleep.For(ctx, time.Until(at))
}
