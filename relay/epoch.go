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

// epoch is the time in which the store vouches for what it hands out: all of Run, unless a reset cuts it.
type epoch struct {
	*session
	remembered map[int]map[postrider.ID]bool // by shard: what had arrived when the last epoch ended, for the first lanes of this one

	mu       sync.Mutex
	cancel   context.CancelFunc
	ended    error          // why the epoch was cut short
	held     map[int]*lane  // by shard
	excluded []postrider.ID // as the last Balance has said
	gone     map[int]*lane  // by shard: the last lane that was dropped; its Publish may still be under way
	moving   bool           // as the last Balance has said
	moved    bool           // keys may have gone from one shard to another
	holed    map[int]bool   // by shard: something was read of it for a lane that is gone, so the next one has to give it up
	list     atomic.Pointer[[]*lane]
	run      sync.WaitGroup // the lanes
}

func newEpoch(hard context.Context, s *shared, feed feeds.Feed, remembered map[int]map[postrider.ID]bool) *epoch {
	t := &epoch{remembered: remembered, held: make(map[int]*lane), gone: make(map[int]*lane), holed: make(map[int]bool)}
	t.session, t.cancel = newSession(hard, s, feed)
	t.list.Store(new([]*lane))
	return t
}

// end cuts the epoch short: what has been read is void, nothing more is settled. A Publish under way ends by itself.
func (t *epoch) end(cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended != nil {
		return
	}
	t.ended = cause
	t.cancel()
	for _, l := range t.held {
		l.kill(false)
	}
}

func (t *epoch) cause() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ended
}

// over ends the epoch if err says that it is over.
func (t *epoch) over(err error) bool {
	if errors.Is(err, feeds.ErrReset) || (errors.Is(err, feeds.ErrForeign) && len(t.lanes()) > 0) {
		t.end(err)
		return true
	}
	return false
}

// lanes returns the lanes of the shards held, draining ones included. The slice is never changed.
func (t *epoch) lanes() []*lane { return *t.list.Load() }

// recall returns what the lanes of a epoch that is over have confirmed lately, by shard.
func (t *epoch) recall() map[int]map[postrider.ID]bool {
	all := make(map[int]map[postrider.ID]bool)
	for _, l := range t.lanes() {
		all[l.shard] = l.machine.Recall()
	}
	return all
}

// publishList makes lanes return what held contains. The caller holds the lock.
func (t *epoch) publishList() {
	list := make([]*lane, 0, len(t.held))
	for _, l := range t.held {
		list = append(list, l)
	}
	slices.SortFunc(list, func(a, b *lane) int { return cmp.Compare(a.shard, b.shard) }) // one order for all relays
	t.list.Store(&list)
}

// drop forgets a lane whose shard is no longer the relay's. The caller holds the lock.
func (t *epoch) drop(l *lane) {
	l.kill(true)
	delete(t.held, l.shard)
	t.gone[l.shard] = l
}
