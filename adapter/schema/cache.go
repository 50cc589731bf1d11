package schema

import (
	"context"
	"sync"

	"github.com/postrider/postrider"
)

// cache caches immutable values. Concurrent callers of a missing key share one load. Failures are
// not cached.
type cache[K comparable, V any] struct {
	most int // entries

	mu    sync.Mutex
	have  map[K]V
	loads map[K]*load[V]
}

// load is a call in progress. All fields but done are written before done is closed, and read
// after.
type load[V any] struct {
	done   chan struct{}
	value  V
	err    error
	gaveUp bool // its caller's context ended, so err is meaningless to the others
}

func newCache[K comparable, V any](most int) *cache[K, V] {
	return &cache[K, V]{most: most, have: make(map[K]V), loads: make(map[K]*load[V])}
}

// get returns the cached value of key, or the result of fetch.
func (c *cache[K, V]) get(ctx context.Context, key K, fetch func(context.Context) (V, error)) (V, error) {
	for {
		c.mu.Lock()
		if value, ok := c.have[key]; ok {
			c.mu.Unlock()
			return value, nil
		}
		l, underWay := c.loads[key]
		if !underWay {
			l = &load[V]{done: make(chan struct{})}
			c.loads[key] = l
		}
		c.mu.Unlock()
		if !underWay {
			return c.lead(ctx, key, l, fetch)
		}
		select {
		case <-l.done:
			if !l.gaveUp {
				return l.value, l.err
			}
		case <-ctx.Done():
			var none V
			return none, postrider.Unavailable(context.Cause(ctx))
		}
	}
}

func (c *cache[K, V]) lead(ctx context.Context, key K, l *load[V], fetch func(context.Context) (V, error)) (V, error) {
	l.gaveUp = true // remains true if fetch panics, so that waiting callers continue
	defer func() {
		c.mu.Lock()
		delete(c.loads, key)
		if !l.gaveUp && l.err == nil {
			c.makeRoom()
			c.have[key] = l.value
		}
		c.mu.Unlock()
		close(l.done)
	}()
	l.value, l.err = fetch(ctx)
	l.gaveUp = l.err != nil && ctx.Err() != nil
	return l.value, l.err
}

// makeRoom drops arbitrary entries if the cache is full; they can be loaded again.
func (c *cache[K, V]) makeRoom() {
	for key := range c.have {
		if len(c.have) < c.most {
			return
		}
		delete(c.have, key)
	}
}
