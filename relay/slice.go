package relay

import (
	"context"
	"time"

	"github.com/postrider/postrider/store/feeds"
)

// mergeAfter is how long a slice must have kept up before it is merged back.
const mergeAfter = 5 * time.Second

// join drains a slice that has caught up and the worker of its shard, so that they can be merged. It
// does so for one slice at a time.
func (t *epoch) join() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.held {
		if w.slice == nil || w.draining() || time.Since(w.look().behind) < mergeAfter {
			continue
		}
		whole := t.held[w.slice.Base]
		if whole == nil || whole.draining() || whole.look().Buffered > t.cfg.ReadAhead/2 {
			continue
		}
		w.partner, whole.partner = whole, w
		w.drain()
		whole.drain()
		return
	}
}

// rearrange splits or merges the shards of workers that ended for that purpose. It returns the other
// ended workers, and whether Balance can take shards as a result.
func (t *epoch) rearrange(ended []*worker) (rest []*worker, changed bool, err error) {
	for _, w := range ended {
		switch {
		case w.split != "":
			changed = true
			err = t.giveUp(t.ctx, []*worker{w}, func(ctx context.Context, marks []feeds.Mark) error {
				_, err := t.splitter.Split(ctx, marks[0], w.split)
				return err
			})
		case w.partner == nil || !t.holds(w.partner):
			rest = append(rest, w)
		case w.slice != nil && isClosed(w.partner.done):
			changed = true
			err = t.giveUp(t.ctx, []*worker{w.partner, w}, func(ctx context.Context, marks []feeds.Mark) error {
				done, err := t.splitter.Merge(ctx, marks[0], marks[1])
				if done {
					t.log.Info("relay: a tenant has caught up, and is read together with the others", "shard", w.slice.Base, "tenant", w.slice.Tenant)
				}
				return err
			})
		}
		if err != nil {
			return rest, changed, err
		}
	}
	return rest, changed, nil
}

func (t *epoch) holds(w *worker) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.held[w.shard] == w
}
