package relay

import (
	"context"
	"time"

	"github.com/postrider/postrider/store/feeds"
)

// mergeAfter is how long a slice must have kept up before it is merged back.
const mergeAfter = 5 * time.Second

// join drains a slice that has caught up and the lane of its shard, so that they can be merged. It
// does so for one slice at a time.
func (t *epoch) join() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.held {
		if l.slice == nil || l.draining() || time.Since(l.look().behind) < mergeAfter {
			continue
		}
		whole := t.held[l.slice.Base]
		if whole == nil || whole.draining() || whole.look().Buffered > t.cfg.ReadAhead/2 {
			continue
		}
		l.partner, whole.partner = whole, l
		l.drain()
		whole.drain()
		return
	}
}

// rearrange splits or merges the shards of lanes that ended for that purpose. It returns the other
// ended lanes, and whether Balance can take shards as a result.
func (t *epoch) rearrange(ended []*lane) (rest []*lane, changed bool, err error) {
	for _, l := range ended {
		switch {
		case l.split != "":
			changed = true
			err = t.giveUp(t.ctx, []*lane{l}, func(ctx context.Context, marks []feeds.Mark) error {
				_, err := t.splitter.Split(ctx, marks[0], l.split)
				return err
			})
		case l.partner == nil || !t.holds(l.partner):
			rest = append(rest, l)
		case l.slice != nil && isClosed(l.partner.done):
			changed = true
			err = t.giveUp(t.ctx, []*lane{l.partner, l}, func(ctx context.Context, marks []feeds.Mark) error {
				done, err := t.splitter.Merge(ctx, marks[0], marks[1])
				if done {
					t.log.Info("relay: a tenant has caught up, and is read together with the others", "shard", l.slice.Base, "tenant", l.slice.Tenant)
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

func (t *epoch) holds(l *lane) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.held[l.shard] == l
}
