package relay

import (
	"context"
	"errors"
	"fmt"

	"github.com/postrider/postrider/store/feeds"
)

// releaseAll gives up everything at the end of Run. It tries again where a retry can help.
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

// giveUp has the shards of lanes released by do.
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
	// Meanwhile no lease is renewed, and those of other shards must outlive a call that is never answered.
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
