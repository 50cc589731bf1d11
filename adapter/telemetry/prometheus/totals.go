package prometheus

import (
	"maps"
	"slices"
	"sync"
)

// totals adds up the figures of several sources with one key, such as two relays of one feed in a
// process. A key is removed with its last source.
type totals[K comparable, S any] struct {
	// add adds s to a sum: its counters and, if it is live, its gauges.
	add  func(to *S, s S, live bool)
	mu   sync.Mutex
	keys map[K]*total[S]
}

type total[S any] struct {
	sources map[int]func() S
	next    int
	gone    S // final counts of removed sources: a counter must not fall while its key has other sources
}

func newTotals[K comparable, S any](add func(to *S, s S, live bool)) *totals[K, S] {
	return &totals[K, S]{add: add, keys: make(map[K]*total[S])}
}

// attach adds a source and returns a function that removes it.
func (t *totals[K, S]) attach(key K, source func() S) (remove func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of, ok := t.keys[key]
	if !ok {
		of = &total[S]{sources: make(map[int]func() S)}
		t.keys[key] = of
	}
	n := of.next
	of.next++
	of.sources[n] = source
	return sync.OnceFunc(func() {
		last := source() // called without the lock: it may take locks of its own
		t.mu.Lock()
		defer t.mu.Unlock()
		t.add(&of.gone, last, false)
		delete(of.sources, n)
		if len(of.sources) == 0 {
			delete(t.keys, key)
		}
	})
}

// sums returns the sum of each key.
func (t *totals[K, S]) sums() map[K]S {
	type part struct {
		key     K
		gone    S
		sources []func() S
	}
	t.mu.Lock()
	parts := make([]part, 0, len(t.keys))
	for key, of := range t.keys {
		parts = append(parts, part{key, of.gone, slices.Collect(maps.Values(of.sources))})
	}
	t.mu.Unlock()

	sums := make(map[K]S, len(parts))
	for _, p := range parts {
		sum := p.gone
		for _, source := range p.sources {
			t.add(&sum, source(), true)
		}
		sums[p.key] = sum
	}
	return sums
}
