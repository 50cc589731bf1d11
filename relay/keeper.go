package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/postrider/postrider"
)

// keep holds the relay's fair share of shards until ctx ends. Calls of the feed are not cut when it does: a Balance
// that is given up half-way may have taken shards that nobody would then release.
func (t *tenure) keep(ctx context.Context) {
	trouble := outage{log: t.r.log, what: "balancing"}
	releasing := outage{log: t.r.log, what: "releasing surplus shards"}
	pause := backoff{min: t.r.cfg.RetryMin, max: t.r.cfg.RetryMax}
	for ctx.Err() == nil {
		wait := t.r.cfg.BalanceInterval
		if err := t.balance(); err == nil { //nolint:contextcheck // what has begun lasts as long as the tenure
			trouble.ok()
			pause.reset()
			t.join()
		} else {
			if t.over(err) || t.ctx.Err() != nil {
				return
			}
			trouble.fail(err)
			wait = pause.next()
		}
		for next := time.After(wait); next != nil; {
			select {
			case <-next:
				next = nil
			case <-t.drained:
			case <-ctx.Done():
				return // what has drained is released with the others
			}
			if changed, err := t.releaseDrained(); err == nil {
				releasing.ok()
				if changed {
					next = nil // there is something to take
				}
			} else if t.over(err) || t.ctx.Err() != nil {
				return
			} else {
				releasing.fail(err) // tried again at the next turn, if Balance says that the shard is still held
			}
		}
	}
}

func (t *tenure) balance() error {
	call, cancel := context.WithTimeout(t.ctx, t.r.cfg.Lease)
	defer cancel()
	t.r.count.balances.Add(1)
	share, err := t.feed.Balance(call)
	t.r.setPaused(err)
	if err != nil {
		return err
	}
	t.r.count.quota.Store(int64(share.Quota))
	t.r.count.members.Store(int64(share.Members))
	t.r.setPausedFeed(share.Paused)
	if share.Deferred {
		t.attend()
	}
	t.adopt(share)
	return nil
}

// adopt makes the lanes agree with the share.
func (t *tenure) adopt(share postrider.Share) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended != nil {
		return
	}
	var gained, lost []int
	for shard := range t.held {
		if !slices.Contains(share.Shards, shard) {
			lost = append(lost, shard)
		}
	}
	for _, shard := range lost {
		t.drop(t.held[shard])
	}
	for _, shard := range share.Shards {
		if t.held[shard] == nil {
			t.start(shard, share)
			gained = append(gained, shard)
		}
	}
	t.r.remembered = nil // what is gained later may have been sent by others meanwhile, or is to be sent again
	t.yield(len(share.Shards) - share.Quota)
	for _, l := range t.held { // a slice goes where its shard goes
		if l.slice != nil && (t.held[l.slice.Base] == nil || t.held[l.slice.Base].draining.Load()) {
			l.drain()
		}
	}
	if len(gained)+len(lost) > 0 {
		t.publishList()
		t.r.count.fenced.Add(int64(len(lost)))
		t.r.log.Info("relay: shards have changed hands", "gained", gained, "lost", lost,
			"holds", len(t.held), "quota", share.Quota, "members", share.Members)
		signal(t.more)
		signal(t.settled)
	}
}

// start makes a lane. The caller holds the lock.
func (t *tenure) start(shard int, share postrider.Share) {
	l := newLane(t, shard)
	l.behind.Store(time.Now().UnixNano())
	if i := slices.IndexFunc(share.Slices, func(s postrider.Slice) bool { return s.Shard == shard }); i >= 0 {
		l.slice = &share.Slices[i]
	}
	if slices.Contains(share.Orphans, shard) { // others of the shard may make progress, so that it never becomes suspect
		l.inherited.left = 2 * t.r.cfg.BatchSize
	}
	if slices.Contains(share.Suspects, shard) {
		// So far behind one that is stuck may it be, and the last one before it need not be settled.
		l.careful.left = t.r.cfg.ReadAhead + t.r.cfg.BatchSize
		l.mortal.Store(true)
		t.r.log.Warn("relay: the relays that had the shard died without any progress; sending one message at a time", "shard", shard)
	}
	if old := t.gone[shard]; old != nil {
		l.after = old.done
		delete(t.gone, shard)
	}
	l.known = t.r.remembered[shard]
	if t.holed[shard] {
		delete(t.holed, shard)
		l.drain()
	}
	t.held[shard] = l
	t.run.Go(l.run)
}

// drop forgets a lane whose shard is no longer the relay's. The caller holds the lock.
func (t *tenure) drop(l *lane) {
	l.kill(true)
	delete(t.held, l.shard)
	t.gone[l.shard] = l
}

// yield drains lanes until surplus of them do, those with the least read ahead first. The caller holds the lock.
func (t *tenure) yield(surplus int) {
	var working []*lane
	for _, l := range t.held {
		if l.slice != nil {
			continue
		}
		if l.draining.Load() {
			surplus--
		} else {
			working = append(working, l)
		}
	}
	if surplus <= 0 {
		return
	}
	slices.SortFunc(working, func(a, b *lane) int {
		return cmp.Or(cmp.Compare(a.buffered.Load(), b.buffered.Load()), cmp.Compare(b.shard, a.shard))
	})
	for _, l := range working[:min(surplus, len(working))] {
		l.drain()
	}
}

// releaseDrained gives up the shards of lanes that have come to their end. It reports whether there are others to take.
func (t *tenure) releaseDrained() (changed bool, err error) {
	var ended []*lane
	for _, l := range t.lanes() {
		if l.draining.Load() && isClosed(l.done) {
			ended = append(ended, l)
		}
	}
	ended, changed, err = t.rearrange(ended)
	if err != nil || len(ended) == 0 {
		return changed, err
	}
	return changed, t.release(t.ctx, ended)
}

// releaseAll gives up everything at the end of Run. It tries again where a retry can help.
func (t *tenure) releaseAll(ctx context.Context) error {
	if len(t.lanes()) == 0 {
		return nil
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.r.cfg.DrainTimeout)
	defer cancel()
	pause := backoff{min: t.r.cfg.RetryMin, max: t.r.cfg.RetryMax}
	for {
		err := t.release(last, t.lanes())
		if err == nil {
			return nil
		}
		if errors.Is(err, postrider.ErrReset) || !sleep(last, pause.next()) {
			return fmt.Errorf("shards were not released: %w", err)
		}
	}
}

func (t *tenure) release(ctx context.Context, lanes []*lane) error {
	return t.giveUp(ctx, lanes, t.feed.Release)
}

// giveUp has the shards of lanes released by do.
func (t *tenure) giveUp(ctx context.Context, lanes []*lane, do func(context.Context, []postrider.Mark) error) error {
	for _, l := range lanes {
		l.awaitAttendant() // while leases can still be renewed
	}
	select {
	case t.ledger <- struct{}{}:
		defer func() { <-t.ledger }()
	case <-ctx.Done():
		return ctx.Err()
	}
	marks := make([]postrider.Mark, 0, len(lanes))
	for _, l := range lanes {
		marks = append(marks, l.mark().Mark)
	}
	// Meanwhile no lease is renewed, and those of other shards must outlive a call that is never answered.
	call, cancel := context.WithTimeout(ctx, min(callTimeout, t.r.cfg.Lease/3))
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
