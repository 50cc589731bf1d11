package relay

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
)

// epoch is the period between two resets of the store, or all of Run without resets. A reset makes
// everything void that was read and not settled.
type epoch struct {
	*session
	// remembered holds, by shard, the messages that were confirmed when the last epoch ended. The first workers of this
	// epoch do not send them again.
	remembered map[int]map[postrider.ID]bool

	mu       sync.Mutex
	cancel   context.CancelFunc
	ended    error           // the reset that ended the epoch; nil if none
	held     map[int]*worker // by shard
	excluded []postrider.ID  // from the last Balance
	gone     map[int]*worker // by shard: the last worker that was dropped; its Publish may still be running
	moving   bool            // from the last Balance
	moved    bool            // keys may have moved between shards
	holed    map[int]bool    // shards of which messages were read for a dropped worker: the next worker must release the shard
	list     atomic.Pointer[[]*worker]
	run      sync.WaitGroup // the workers
}

func newEpoch(hard context.Context, s *shared, feed feeds.Feed, remembered map[int]map[postrider.ID]bool) *epoch {
	t := &epoch{remembered: remembered, held: make(map[int]*worker), gone: make(map[int]*worker), holed: make(map[int]bool)}
	t.session, t.cancel = newSession(hard, s, feed)
	t.list.Store(new([]*worker))
	return t
}

// end ends the epoch: everything that was read is void, and nothing more is settled. A running
// Publish is not cancelled.
func (t *epoch) end(cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended != nil {
		return
	}
	t.ended = cause
	t.cancel()
	for _, w := range t.held {
		w.kill(false)
	}
}

func (t *epoch) cause() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ended
}

// over ends the epoch, and reports true, if err means that the store has made what was read void:
// it was reset or, while there are workers, replaced by a foreign one.
func (t *epoch) over(err error) bool {
	if errors.Is(err, feeds.ErrReset) || (errors.Is(err, feeds.ErrForeign) && len(t.workers()) > 0) {
		t.end(err)
		return true
	}
	return false
}

// workers returns the workers of all owned shards, including draining ones. The slice is immutable.
func (t *epoch) workers() []*worker { return *t.list.Load() }

// recall returns, by shard, the messages that the workers of an ended epoch confirmed recently.
func (t *epoch) recall() map[int]map[postrider.ID]bool {
	all := make(map[int]map[postrider.ID]bool)
	for _, w := range t.workers() {
		all[w.shard] = w.machine.Recall()
	}
	return all
}

// publishList updates the result of workers from held. The caller holds the lock.
func (t *epoch) publishList() {
	list := make([]*worker, 0, len(t.held))
	for _, w := range t.held {
		list = append(list, w)
	}
	// All relays use one order, so that concurrent calls do not deadlock in the store.
	slices.SortFunc(list, func(a, b *worker) int { return cmp.Compare(a.shard, b.shard) })
	t.list.Store(&list)
}

// drop removes a worker whose shard the relay no longer owns. The caller holds the lock.
func (t *epoch) drop(w *worker) {
	w.kill(true)
	delete(t.held, w.shard)
	t.gone[w.shard] = w
}
