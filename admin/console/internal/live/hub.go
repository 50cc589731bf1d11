package live

import (
	"errors"
	"sync"
)

var (
	// ErrCrowded means that too many watch already, in all or from one place.
	ErrCrowded = errors.New("live: too many watch already")
	// ErrClosed means that nobody samples any more.
	ErrClosed = errors.New("live: closed")
)

// Hub bounds how many may watch at the same time.
type Hub struct {
	most, each int

	mu       sync.Mutex
	all      int
	byClient map[string]int
}

// NewHub returns a hub for most watchers in all, and each from one client.
func NewHub(most, each int) *Hub { return &Hub{most: most, each: each, byClient: make(map[string]int)} }

// Enter counts a watcher in, until leave is called.
func (h *Hub) Enter(client string) (leave func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all >= h.most || h.byClient[client] >= h.each {
		return nil, ErrCrowded
	}
	h.all++
	h.byClient[client]++
	return sync.OnceFunc(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.all--
		if h.byClient[client]--; h.byClient[client] == 0 {
			delete(h.byClient, client)
		}
	}), nil
}

// Event is one message to a watcher.
type Event struct {
	ID   int64 // 0: it cannot be asked for again
	Name string
	Data []byte
}

// room is how many events a watcher may be behind before it is dropped.
const room = 16

// Watcher gets what is new.
type Watcher struct {
	// First is what it has missed, and how things stand.
	First  []Event
	events chan Event
	leave  func()
}

// Events are what comes after First. The channel is closed when the watcher was too slow, or nobody samples any more.
func (w *Watcher) Events() <-chan Event { return w.events }
