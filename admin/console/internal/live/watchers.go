package live

import (
	"encoding/json"
	"time"
)

func eventOf(s Sample) Event {
	data, err := json.Marshal(s)
	if err != nil {
		panic(err) // a struct of numbers
	}
	return Event{ID: s.T, Name: "sample", Data: data}
}

// Subscribe returns a watcher, which gets every sample after one that it had, or the last one if after is 0. The client is
// whom it counts for.
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

// Leave ends a watcher.
func (w *Watch) Leave(watcher *Watcher) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop(watcher)
}

// drop lets a watcher go. The caller holds w.mu.
func (w *Watch) drop(watcher *Watcher) {
	if _, here := w.watchers[watcher]; here {
		delete(w.watchers, watcher)
		close(watcher.events)
		watcher.leave()
	}
}

// tell gives all watchers an event. One with a key is told only when that has changed.
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
			w.drop(watcher) // it has not read for long: whoever it is comes again, and asks for what it has missed
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
