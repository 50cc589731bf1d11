package route

import (
	"fmt"

	"github.com/postrider/postrider"
)

// errElsewhere is the error of a message that is not tried because the same call takes an earlier
// message of its key to another destination.
var errElsewhere = fmt.Errorf("route: an earlier message of the key must go to another destination first: %w", postrider.ErrNotTried)

// Replace makes the router use another table, with the destinations that it needs. A Publish that
// is under way finishes with the old table. A known name keeps its publisher; Close also closes new
// ones. On error nothing changes.
//
// The result of [Router.KeepsOrder] does not change. If it is true and the new table has several
// destinations, the router keeps order itself: per call, it sends messages of one key to one
// destination only and leaves the rest to the next call. This is correct but slower than a new
// router.
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

// mayGo reports whether the order of m's key allows sending it to a destination in this call, and
// if so records it.
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
