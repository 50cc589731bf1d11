package live

import (
	"encoding/json"
	"time"
)

func eventOf(s Sample) Event {
	data, err := json.Marshal(s)
	if err != nil {
		panic(err) // unreachable: plain numbers always marshal
	}
	return Event{ID: s.T, Name: "sample", Data: data}
}

// Subscribe returns a watcher that receives every sample later than after, or from the last one on
// if after is 0. The watcher counts for the client.
func (w *Watch) Subscribe(client string, after int64) (*Watcher, error) {
	leave, err := w.cfg.Hub.Enter(client)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		leave()
		return nil, ErrClosed
	}
	w.interest(time.Now())
	missed := w.history.since(after)
	if after <= 0 && len(missed) > 0 {
		missed = missed[len(missed)-1:]
	}
	watcher := &Watcher{events: make(chan Event, room), leave: leave}
	for _, s := range missed {
		watcher.First = append(watcher.First, eventOf(s))
	}
	if w.report.Data != nil {
		watcher.First = append(watcher.First, w.report)
	}
	w.watchers[watcher] = struct{}{}
	return watcher, nil
}

// Leave removes a watcher.
func (w *Watch) Leave(watcher *Watcher) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop(watcher)
}

// drop removes a watcher. The caller holds w.mu.
func (w *Watch) drop(watcher *Watcher) {
	if _, here := w.watchers[watcher]; here {
		delete(w.watchers, watcher)
		close(watcher.events)
		watcher.leave()
	}
}

// tell sends an event to all watchers. It sends an event with a key only if the key has changed.
func (w *Watch) tell(e Event, key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if key != "" {
		if key == w.reported {
			return
		}
		w.report, w.reported = e, key
	}
	for watcher := range w.watchers {
		select {
		case watcher.events <- e:
		default:
			w.drop(watcher) // too slow: the browser reconnects, and asks for what it has missed
		}
	}
}

func (w *Watch) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for watcher := range w.watchers {
		w.drop(watcher)
	}
}
