package bench

import (
	"context"
	"errors"
	"fmt"
)

// LatencyResult is the time from commit to confirmation.
type LatencyResult struct {
	P50 float64 `json:"p50_ms"`
	P99 float64 `json:"p99_ms"`
	Max float64 `json:"max_ms"`
}

// Latency measures the time from commit to confirmation at a steady rate.
func Latency(ctx context.Context, l *Lab) (result LatencyResult, err error) {
	b := newBook()
	p, err := l.hire(ctx, b)
	if err != nil {
		return LatencyResult{}, err
	}
	defer p.dismiss()
	relay, err := l.carry(ctx, defaultFeed, discarding(b))
	if err != nil {
		return LatencyResult{}, err
	}
	defer func() { err = errors.Join(err, relay.halt()) }()
	if err := l.warmUp(ctx, p); err != nil {
		return LatencyResult{}, err
	}
	if err := p.drain(ctx, "warming up"); err != nil {
		return LatencyResult{}, err
	}

	first := b.drawn()
	stop := l.counting(fmt.Sprintf("%d messages/s", l.Rate), l.Phase)
	err = p.steady(ctx, l.Rate, l.Phase)
	stop()
	if err != nil {
		return LatencyResult{}, err
	}
	if err := p.drain(ctx, "the rest"); err != nil {
		return LatencyResult{}, err
	}
	if missing := b.undelivered(); missing > 0 {
		return LatencyResult{}, fmt.Errorf("bench: %d messages were not delivered", missing)
	}
	latencies := b.latencies(first, b.drawn())
	return LatencyResult{
		P50: milliseconds(percentile(latencies, 0.50)),
		P99: milliseconds(percentile(latencies, 0.99)),
		Max: milliseconds(percentile(latencies, 1)),
	}, nil
}

// Table implements [Result].
func (r LatencyResult) Table() [][]string {
	return [][]string{
		{"commit to confirmed, median", millis(r.P50), "ms"},
		{"commit to confirmed, 99 %", millis(r.P99), "ms"},
		{"commit to confirmed, longest", millis(r.Max), "ms"},
	}
}
