package auth

import (
	"context"
	"sync"
)

// requests holds the running requests by session, so that streams end when the user signs out.
type requests struct {
	mu   sync.Mutex
	last int
	of   map[string]map[int]context.CancelFunc
}

// enter adds a request to those of a session, and returns a function to call at its end.
func (q *requests) enter(id string, cancel context.CancelFunc) (leave func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.of == nil {
		q.of = make(map[string]map[int]context.CancelFunc)
	}
	if q.of[id] == nil {
		q.of[id] = make(map[int]context.CancelFunc)
	}
	q.last++
	n := q.last
	q.of[id][n] = cancel
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		delete(q.of[id], n)
		if len(q.of[id]) == 0 {
			delete(q.of, id)
		}
	}
}

// end cancels the requests of a session.
func (q *requests) end(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, cancel := range q.of[id] {
		cancel()
	}
}
