package live

import (
	"sync"
	"time"
)

const (
	fineFor   = 15 * time.Minute
	coarseFor = 24 * time.Hour
	coarse    = int64(60) // seconds
)

// ring keeps a fixed number of the latest samples.
type ring struct {
	all  []Sample
	next int // where the next one goes, once all is full
}

func newRing(room int) *ring { return &ring{all: make([]Sample, 0, room)} }

func (r *ring) add(s Sample) {
	if len(r.all) < cap(r.all) {
		r.all = append(r.all, s)
		return
	}
	r.all[r.next] = s
	r.next = (r.next + 1) % len(r.all)
}

// after calls f with those later than t, oldest first.
func (r *ring) after(t int64, f func(Sample)) {
	for i := range r.all {
		if s := r.all[(r.next+i)%len(r.all)]; s.T > t {
			f(s)
		}
	}
}

// history keeps every sample of the last minutes, and one per minute of the last day. It is safe
// for concurrent use.
type history struct {
	step int // seconds

	mu           sync.Mutex
	fine, coarse *ring
	minute       Sample // the incomplete one
	parts        int    // samples in it
}

func newHistory(every time.Duration) *history {
	return &history{
		step: max(1, int(every/time.Second)), fine: newRing(int(fineFor/every) + 1),
		coarse: newRing(int(coarseFor / time.Second / time.Duration(coarse))),
	}
}

func (h *history) add(s Sample) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fine.add(s)
	if t := s.T / coarse * coarse; h.parts > 0 && t != h.minute.T {
		h.coarse.add(h.minute)
		h.parts = 0
	}
	if h.parts == 0 {
		h.minute = blank(s.T / coarse * coarse)
	}
	h.parts++
	m, n := &h.minute, Value(h.parts)
	mean := func(to *Value, v Value) {
		switch {
		case v.Known() && to.Known():
			*to += (v - *to) / n
		case v.Known():
			*to = v
		}
	}
	mean(&m.Enqueued, s.Enqueued)
	mean(&m.Published, s.Published)
	mean(&m.Failed, s.Failed)
	// Use the maximum, so that short peaks remain visible.
	m.Pending, m.Oldest = larger(m.Pending, s.Pending), larger(m.Oldest, s.Oldest)
	m.P50, m.P95, m.P99 = larger(m.P50, s.P50), larger(m.P95, s.P95), larger(m.P99, s.P99)
}

// since returns every sample later than t, oldest first.
func (h *history) since(t int64) []Sample {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []Sample
	h.fine.after(t, func(s Sample) { all = append(all, s) })
	return all
}

// series returns the samples of the last minutes, with all samples if the period is short. It
// inserts a blank sample in each long gap.
func (h *history) series(minutes int, now time.Time) *Series {
	h.mu.Lock()
	defer h.mu.Unlock()
	from, step, apart := now.Add(-time.Duration(minutes)*time.Minute).Unix(), h.step, int64(45)
	kept := h.fine
	if time.Duration(minutes)*time.Minute > fineFor {
		kept, step, apart = h.coarse, int(coarse), 3*coarse
	}
	s := newSeries(step, len(kept.all)+1)
	add := func(p Sample) {
		if n := len(s.T); n > 0 && p.T-s.T[n-1] > apart {
			s.add(blank(s.T[n-1] + int64(step)))
		}
		s.add(p)
	}
	kept.after(from, add)
	if kept == h.coarse && h.parts > 0 {
		add(h.minute)
	}
	return s
}
