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
			// Drained lanes are released with the others. And when the epoch is over, recall needs all its lanes: to drop one here
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
	share, err := t.feed.Balance(call)
	t.setPaused(err)
	if err != nil {
		return err
	}
	t.count.quota.Store(int64(share.Quota))
	t.count.members.Store(int64(share.Members))
	t.setPausedFeed(share.Paused)
	t.moving, t.moved = share.Moving, t.moved || share.Moving
	t.adopt(share)
	if share.Deferred {
		t.lookForDue() // the lanes exist now
	}
	return nil
}

// adopt starts, drops and drains lanes to match the share.
func (t *epoch) adopt(share feeds.Share) {
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
			t.start(shard, share)
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
	for _, l := range t.held { // a slice moves together with its shard
		if l.slice != nil && (t.held[l.slice.Base] == nil || t.held[l.slice.Base].draining()) {
			l.drain()
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

// start starts a lane. The caller holds the lock.
func (t *epoch) start(number int, share feeds.Share) {
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
	l := newLane(t.session, number, slice, start)
	for of, old := range t.gone {
		if of == number || t.moved {
			l.after = append(l.after, old)
		}
	}
	delete(t.gone, number)
	if t.holed[number] {
		delete(t.holed, number)
		l.drain()
	}
	t.held[number] = l
	t.run.Go(l.run)
}

// yield drains surplus lanes, those with the fewest buffered messages first. Lanes that are
// draining already count. The caller holds the lock.
func (t *epoch) yield(surplus int) {
	var working []*lane
	for _, l := range t.held {
		if l.slice != nil {
			continue
		}
		if l.draining() {
			surplus--
		} else {
			working = append(working, l)
		}
	}
	if surplus <= 0 {
		return
	}
	slices.SortFunc(working, func(a, b *lane) int {
		return cmp.Or(cmp.Compare(a.look().Buffered, b.look().Buffered), cmp.Compare(b.shard, a.shard))
	})
	for _, l := range working[:min(surplus, len(working))] {
		l.drain()
	}
}

// releaseDrained releases the shards of lanes that have drained. It reports whether Balance can
// take shards as a result.
func (t *epoch) releaseDrained() (changed bool, err error) {
	var ended []*lane
	for _, l := range t.lanes() {
		if l.draining() && isClosed(l.done) {
			ended = append(ended, l)
		}
	}
	ended, changed, err = t.rearrange(ended)
	if err != nil || len(ended) == 0 {
		return changed, err
	}
	return changed, t.release(t.ctx, ended)
}
