package live

import (
	"context"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/postrider/postrider"
)

const (
	slots   = 1024 // seconds that are kept
	sub     = 8    // buckets per power of two: a percentile is off by at most an eighth
	buckets = 20 * sub
)

// Meter measures the time from enqueue to confirmation in the relays of this process. It is a
// [postrider.Observer] that only observes publishing. Its zero value is ready, and safe for
// concurrent use.
type Meter struct {
	turn    sync.Mutex // held to reuse a slot
	seconds [slots]second
}

type second struct {
	at     atomic.Int64 // Unix
	failed atomic.Int64
	counts [buckets]atomic.Uint32
}

var _ postrider.Observer = (*Meter)(nil)

// Enqueue implements [postrider.Observer]. It does nothing.
func (m *Meter) Enqueue(ctx context.Context, _ []postrider.Message) (context.Context, func([]int, error)) {
	return ctx, ignoreOffer
}

// Handle implements [postrider.Observer]. It does nothing.
func (m *Meter) Handle(ctx context.Context, _ string, _ *postrider.Message) (context.Context, func(error)) {
	return ctx, ignoreError
}

func ignoreOffer([]int, error) {}
func ignoreError(error)        {}

// Publish implements [postrider.Observer].
func (m *Meter) Publish(ctx context.Context, _ string, msgs []postrider.Message) (context.Context, func([]error)) {
	return ctx, func(errs []error) { m.note(time.Now(), msgs, errs) }
}

func (m *Meter) note(now time.Time, msgs []postrider.Message, errs []error) {
	s := m.second(now.Unix())
	ms := now.UnixMilli()
	failed := int64(0)
	for i := range msgs {
		if i < len(errs) && errs[i] != nil {
			failed++
			continue
		}
		if msgs[i].ID[6]>>4 == 7 { // other versions of UUIDs contain no time
			s.counts[bucket(ms-msgs[i].ID.Time().UnixMilli())].Add(1)
		}
	}
	if failed > 0 {
		s.failed.Add(failed)
	}
}

// second returns the slot of a second, and clears it if it was used for an earlier one.
func (m *Meter) second(at int64) *second {
	s := &m.seconds[at%slots]
	if s.at.Load() == at {
		return s
	}
	m.turn.Lock()
	defer m.turn.Unlock()
	if s.at.Load() != at {
		for i := range s.counts {
			s.counts[i].Store(0)
		}
		s.failed.Store(0)
		s.at.Store(at)
	}
	return s
}

// bucket returns the bucket of a duration in milliseconds.
func bucket(ms int64) int {
	if ms < sub {
		return int(max(0, ms))
	}
	exponent := bits.Len64(uint64(ms)) - 4 // 0 for 8 to 15
	return min(buckets-1, (exponent+1)*sub+int(ms>>exponent)-sub)
}

// middle returns the duration in seconds that represents a bucket.
func middle(b int) float64 {
	if b < sub {
		return float64(b) / 1000
	}
	exponent := b/sub - 1
	low := int64(b%sub+sub) << exponent
	return (float64(low) + float64(int64(1)<<exponent)/2) / 1000
}

// Latency is the distribution of latencies in a period.
type Latency struct {
	Count         int64
	Failed        int64
	P50, P95, P99 Value // seconds
}

// Between returns the latency of messages that were confirmed after one second, up to and including
// another.
func (m *Meter) Between(after, until int64) Latency {
	var counts [buckets]int64
	l := Latency{P50: Unknown(), P95: Unknown(), P99: Unknown()}
	for at := max(after+1, until-slots+1); at <= until; at++ {
		s := &m.seconds[at%slots]
		if s.at.Load() != at {
			continue
		}
		l.Failed += s.failed.Load()
		for i := range counts {
			n := int64(s.counts[i].Load())
			counts[i] += n
			l.Count += n
		}
	}
	if l.Count == 0 {
		return l
	}
	seen := int64(0)
	for i, n := range counts {
		before := seen
		seen += n
		for _, p := range []struct {
			to   *Value
			part float64
		}{{&l.P50, 0.5}, {&l.P95, 0.95}, {&l.P99, 0.99}} {
			if rank := int64(p.part*float64(l.Count-1)) + 1; before < rank && rank <= seen {
				*p.to = Value(middle(i))
			}
		}
	}
	return l
}
