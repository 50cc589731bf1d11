package relay

import (
	"context"
	"errors"
	"fmt"

	"github.com/postrider/postrider/internal/sleep"
	"github.com/postrider/postrider/store/feeds"
)

// releaseAll releases all shards at the end of Run. It retries until DrainTimeout, unless the store
// was reset.
func (t *epoch) releaseAll(ctx context.Context) error {
	if len(t.workers()) == 0 {
		return nil
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.cfg.DrainTimeout)
	defer cancel()
	pause := backoff{policy: t.cfg.Outage}
	for {
		err := t.release(last, t.workers())
		if err == nil {
			return nil
		}
		if errors.Is(err, feeds.ErrReset) || !sleep.For(last, pause.next()) {
			return fmt.Errorf("shards were not released: %w", err)
		}
	}
}

func (t *epoch) release(ctx context.Context, workers []*worker) error {
	return t.giveUp(ctx, workers, t.feed.Release)
}

// giveUp calls do with the marks of workers, to release their shards, and removes the workers.
func (t *epoch) giveUp(ctx context.Context, workers []*worker, do func(context.Context, []feeds.Mark) error) error {
	select {
	case t.ledger <- struct{}{}:
		defer func() { <-t.ledger }()
	case <-ctx.Done():
		return ctx.Err()
	}
	marks := make([]feeds.Mark, 0, len(workers))
	for _, w := range workers {
		marks = append(marks, w.progress().Mark)
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
	for _, w := range workers {
		if t.held[w.shard] == w {
			delete(t.held, w.shard)
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
