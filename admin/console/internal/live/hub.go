package live

import (
	"errors"
	"sync"
)

var (
	// ErrCrowded means that there are too many watchers, in total or of one client.
	ErrCrowded = errors.New("live: too many watchers")
	// ErrClosed means that the watch has stopped.
	ErrClosed = errors.New("live: closed")
)

// Hub limits the number of watchers.
type Hub struct {
	most, each int

	mu       sync.Mutex
	all      int
	byClient map[string]int
}

// NewHub returns a hub for at most most watchers in total, and each per client.
func NewHub(most, each int) *Hub { return &Hub{most: most, each: each, byClient: make(map[string]int)} }

// Enter counts a watcher until leave is called.
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

// Event is an event for watchers.
type Event struct {
	ID   int64 // 0: the event cannot be resumed from
	Name string
	Data []byte
}

// room is the number of events by which a watcher may lag before it is dropped.
const room = 16

// Watcher receives the events of a [Watch].
type Watcher struct {
	// First are the events that it has missed, and the latest report.
	First  []Event
	events chan Event
	leave  func()
}

// Events returns the channel of events after First. It is closed when the watcher is too slow, or
// the watch stops.
func (w *Watcher) Events() <-chan Event { return w.events }
