package relay

import (
	"context"
	"errors"
	"fmt"

	"github.com/postrider/postrider/store/feeds"
)

// releaseAll releases all shards at the end of Run. It retries until DrainTimeout, unless the store
// was reset.
func (t *epoch) releaseAll(ctx context.Context) error {
	if len(t.lanes()) == 0 {
		return nil
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.cfg.DrainTimeout)
	defer cancel()
	pause := backoff{policy: t.cfg.Outage}
	for {
		err := t.release(last, t.lanes())
		if err == nil {
			return nil
		}
		if errors.Is(err, feeds.ErrReset) || !sleep(last, pause.next()) {
			return fmt.Errorf("shards were not released: %w", err)
		}
	}
}

func (t *epoch) release(ctx context.Context, lanes []*lane) error {
	return t.giveUp(ctx, lanes, t.feed.Release)
}

// giveUp calls do with the marks of lanes, to release their shards, and removes the lanes.
func (t *epoch) giveUp(ctx context.Context, lanes []*lane, do func(context.Context, []feeds.Mark) error) error {
	select {
	case t.ledger <- struct{}{}:
		defer func() { <-t.ledger }()
	case <-ctx.Done():
		return ctx.Err()
	}
	marks := make([]feeds.Mark, 0, len(lanes))
	for _, l := range lanes {
		marks = append(marks, l.progress().Mark)
	}
	// The settler renews no lease during the call, so a call that gets no answer must end before
	// the leases of other shards expire.
	call, cancel := context.WithTimeout(ctx, min(callTimeout, t.cfg.Lease/3))
	defer cancel()
	if err := do(call, marks); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range lanes {
		if t.held[l.shard] == l {
			delete(t.held, l.shard)
		}
	}
	t.publishList()
	return nil
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
