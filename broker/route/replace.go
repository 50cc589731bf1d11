package route

import (
	"fmt"

	"github.com/postrider/postrider"
)

// errElsewhere is why a message is not tried in a call that takes an earlier one of its key somewhere else.
var errElsewhere = fmt.Errorf("route: an earlier message of the key goes to another destination first: %w", postrider.ErrNotTried)

// Replace makes the router use another table, with the destinations that it needs. A Publish that is under way ends with
// the old one. A name stands for the same publisher as before; those that are new are closed with the others. An error
// changes nothing.
//
// What [Router.KeepsOrder] says does not change. If it is true, and the new table leads to several destinations, the router
// keeps the promise itself: of a key it sends, in one call, only what goes to one of them, and leaves the rest to the next.
// That is right and slower than a new router.
func (r *Router) Replace(t *Table, destinations map[string]postrider.Publisher) error {
	w, err := newWays(t, destinations)
	if err != nil {
		return err
	}
	w.guarded = r.keepsOrder && !w.keepOrder()
	r.use(w, destinations)
	return nil
}

func (r *Router) use(w *ways, destinations map[string]postrider.Publisher) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, pub := range destinations {
		if _, ok := r.owned[name]; !ok {
			r.owned[name] = pub
		}
	}
	r.ways.Store(w)
}

// mayGo reports whether the order of m's key allows it to go to a destination in this call, and if so takes note of it.
func (b *batch) mayGo(w *ways, m *postrider.Message, to int) bool {
	key := m.OrderKey()
	if key == "" {
		return true
	}
	before, ok := b.sent[key]
	if ok && (before != to || !w.destinations[to].keepsOrder()) {
		return false
	}
	if b.sent == nil {
		b.sent = make(map[string]int)
	}
	b.sent[key] = to
	return true
}
