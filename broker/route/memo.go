package route

import "sync"

// memoSize limits the cache. Tenants and topics can be numerous; a full memo starts over.
const memoSize = 4096

// memo caches results by labels.
type memo[V any] struct {
	mu      sync.RWMutex
	answers map[labels]V
}

// get returns the cached result for l, or calls find.
func (c *memo[V]) get(l labels, find func(labels) V) V {
	c.mu.RLock()
	v, ok := c.answers[l]
	c.mu.RUnlock()
	if ok {
		return v
	}
	v = find(l)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answers == nil || len(c.answers) >= memoSize {
		c.answers = make(map[labels]V)
	}
	c.answers[l] = v
	return v
}
