package route

import "sync"

// memoSize bounds what a memo keeps. Tenants and topics can be many; a memo that is full starts again.
const memoSize = 4096

// memo remembers answers by labels.
type memo[V any] struct {
	mu      sync.RWMutex
	answers map[labels]V
}

// get returns the answer for l, from find if it is not known.
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
