package relay

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/postrider/postrider/relay/internal/shard"
	"github.com/postrider/postrider/store/feeds"
)

// keep holds the relay's fair share of shards until ctx ends. Calls of the feed are not cut when it does: a Balance
// that is given up half-way may have taken shards that nobody would then release.
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
			if ctx.Err() != nil || t.ctx.Err() != nil {
				return // what has drained is released with the others, and recall needs the lanes of an epoch that is over
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

// moveInterval is the time between two turns of balancing while the number of shards changes: keys wait for it.
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
		t.lookForDue() // now that there are lanes to hand them to
	}
	return nil
}

// adopt makes the lanes agree with the share.
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
		if !known || gain && len(share.Excluded) > 0 { // before anything is read for it
			t.held[shard].post(func(m *mail) { m.exclude = &share.Excluded })
		}
	}
	t.remembered = nil // what is gained later may have been sent by others meanwhile, or is to be sent again
	t.yield(len(share.Shards) - share.Quota)
	for _, shard := range share.Stopped {
		t.held[shard].drain()
	}
	for _, l := range t.held { // a slice goes where its shard goes
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

// start makes a lane. The caller holds the lock.
func (t *epoch) start(number int, share feeds.Share) {
	var slice *feeds.Slice
	if i := slices.IndexFunc(share.Slices, func(s feeds.Slice) bool { return s.Shard == number }); i >= 0 {
		slice = &share.Slices[i]
	}
	start := shard.Start{Known: t.remembered[number]}
	if slices.Contains(share.Orphans, number) { // others of the shard may make progress, so that it never becomes suspect
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

// yield drains lanes until surplus of them do, those with the least read ahead first. The caller holds the lock.
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

// releaseDrained gives up the shards of lanes that have come to their end. It reports whether there are others to take.
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
