package relay

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/postrider/postrider/relay/internal/shard"
	"github.com/postrider/postrider/store/feeds"
)

// keep maintains the relay's fair share of shards until ctx ends. It does not cancel a running call
// then: a cancelled Balance may have taken shards, which would stay unserved until their leases
// expire.
func (t *epoch) keep(ctx context.Context) {
	trouble := outage{log: t.log, what: "balancing"}
	releasing := outage{log: t.log, what: "releasing surplus shards"}
	pause := backoff{policy: t.cfg.Outage}
	for ctx.Err() == nil {
		wait := t.cfg.BalanceInterval
		if err := t.balance(); err == nil { //nolint:contextcheck // what has begun lasts as long as the epoch
			if t.moving {
				wait = min(wait, moveInterval)
			}
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
			}
			// Drained workers are released with the others. And when the epoch is over, recall needs all its workers: to drop one here
			// would send again what it had confirmed.
			if ctx.Err() != nil || t.ctx.Err() != nil {
				return
			}
			if changed, err := t.releaseDrained(); err == nil {
				releasing.ok()
				if changed {
					next = nil // Balance can take a shard now
				}
			} else if t.over(err) || t.ctx.Err() != nil {
				return
			} else {
				releasing.fail(err) // retried at the next turn if Balance returns the shard
			}
		}
	}
}

// moveInterval is the time between two calls of Balance while the number of shards changes:
// messages of moving keys wait for it.
const moveInterval = 50 * time.Millisecond

func (t *epoch) balance() error {
	call, cancel := context.WithTimeout(t.ctx, t.cfg.Lease)
	defer cancel()
	t.count.balances.Add(1)
	asked := time.Now()
	share, err := t.feed.Balance(call)
	t.setPaused(err)
	if err != nil {
		return err
	}
	t.count.quota.Store(int64(share.Quota))
	t.count.members.Store(int64(share.Members))
	t.setPausedFeed(share.Paused)
	t.moving, t.moved = share.Moving, t.moved || share.Moving
	t.adopt(share, asked)
	if share.Deferred {
		t.lookForDue() // the workers exist now
	}
	return nil
}

// adopt starts, drops and drains workers to match the share, for which the store was asked at a time.
func (t *epoch) adopt(share feeds.Share, asked time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended != nil {
		return
	}
	var gained, lost []int
	known := slices.Equal(share.Excluded, t.excluded)
	t.excluded = share.Excluded
	for shard := range t.held {
		if !slices.Contains(share.Shards, shard) {
			lost = append(lost, shard)
		}
	}
	for _, shard := range lost {
		t.drop(t.held[shard])
	}
	for _, shard := range share.Shards {
		gain := t.held[shard] == nil
		if gain {
			t.start(shard, share, asked)
			gained = append(gained, shard)
		}
		if !known || gain && len(share.Excluded) > 0 { // before the first read
			t.held[shard].post(func(m *mailbox) { m.exclude = &share.Excluded })
		}
	}
	t.remembered = nil // shards gained later may have had other owners in between, or were rewound
	t.yield(len(share.Shards) - share.Quota)
	for _, shard := range share.Stopped {
		t.held[shard].drain()
	}
	for _, w := range t.held { // a slice moves together with its shard
		if w.slice != nil && (t.held[w.slice.Base] == nil || t.held[w.slice.Base].draining()) {
			w.drain()
		}
	}
	if len(gained)+len(lost) > 0 {
		t.publishList()
		t.count.fenced.Add(int64(len(lost)))
		t.log.Info("relay: shards have changed hands", "gained", gained, "lost", lost,
			"holds", len(t.held), "quota", share.Quota, "members", share.Members)
		signal(t.more)
		signal(t.settled)
	}
}

// start starts a worker. The caller holds the lock.
func (t *epoch) start(number int, share feeds.Share, asked time.Time) {
	var slice *feeds.Slice
	if i := slices.IndexFunc(share.Slices, func(s feeds.Slice) bool { return s.Shard == number }); i >= 0 {
		slice = &share.Slices[i]
	}
	start := shard.Start{Known: t.remembered[number]}
	// Other messages of the shard may still make progress, so the store may never mark it as
	// suspect.
	if slices.Contains(share.Orphans, number) {
		start.Inherited = 2 * t.cfg.BatchSize
	}
	if slices.Contains(share.Suspects, number) {
		// Allow up to ReadAhead messages behind a stuck one, whose predecessor may not be settled yet.
		start.Suspects = t.cfg.ReadAhead + t.cfg.BatchSize
		t.log.Warn("relay: the relays that had the shard died without any progress; sending one message at a time", "shard", number)
	}
	w := newWorker(t.session, number, slice, start, share, asked)
	for of, old := range t.gone {
		if of == number || t.moved {
			w.after = append(w.after, old)
		}
	}
	delete(t.gone, number)
	if t.holed[number] {
		delete(t.holed, number)
		w.drain()
	}
	t.held[number] = w
	t.run.Go(w.run)
}

// yield drains surplus workers, those with the fewest buffered messages first. Workers that are
// draining already count. The caller holds the lock.
func (t *epoch) yield(surplus int) {
	var working []*worker
	for _, w := range t.held {
		if w.slice != nil {
			continue
		}
		if w.draining() {
			surplus--
		} else {
			working = append(working, w)
		}
	}
	if surplus <= 0 {
		return
	}
	slices.SortFunc(working, func(a, b *worker) int {
		return cmp.Or(cmp.Compare(a.look().Buffered, b.look().Buffered), cmp.Compare(b.shard, a.shard))
	})
	for _, w := range working[:min(surplus, len(working))] {
		w.drain()
	}
}

// releaseDrained releases the shards of workers that have drained. It reports whether Balance can
// take shards as a result.
func (t *epoch) releaseDrained() (changed bool, err error) {
	var ended []*worker
	for _, w := range t.workers() {
		if w.draining() && isClosed(w.done) {
			ended = append(ended, w)
		}
	}
	ended, changed, err = t.rearrange(ended)
	if err != nil || len(ended) == 0 {
		return changed, err
	}
	return changed, t.release(t.ctx, ended)
}
