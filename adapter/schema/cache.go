package schema

import (
	"context"
	"sync"

	"github.com/postrider/postrider"
)

// cache keeps what never changes, and loads it once, however many ask for it at the same time. A failure is not kept.
type cache[K comparable, V any] struct {
	most int // entries

	mu    sync.Mutex
	have  map[K]V
	loads map[K]*load[V]
}

// load is one call under way. All but done are written before done is closed, and read after.
type load[V any] struct {
	done   chan struct{}
	value  V
	err    error
	gaveUp bool // its caller went away, so err says nothing to the others
}

func newCache[K comparable, V any](most int) *cache[K, V] {
	return &cache[K, V]{most: most, have: make(map[K]V), loads: make(map[K]*load[V])}
}

// get returns what is kept under key, or what fetch returns.
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
	l.gaveUp = true // also if fetch panics: those who wait must not wait for ever
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

// makeRoom drops any entry when the cache is full: it can be loaded again.
func (c *cache[K, V]) makeRoom() {
	for key := range c.have {
		if len(c.have) < c.most {
			return
		}
		delete(c.have, key)
	}
}
