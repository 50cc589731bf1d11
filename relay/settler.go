package relay

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/postrider/postrider/internal/sleep"
	"github.com/postrider/postrider/store/feeds"
)

// settle records progress and renews leases until ctx ends.
func (t *epoch) settle(ctx context.Context) {
	cfg := &t.cfg
	trouble := outage{log: t.log, what: "settling"}
	pause := backoff{policy: cfg.Outage, most: max(cfg.Outage.Pause(1, 0), cfg.margin())} // retry soon enough to renew the leases
	timer := time.NewTimer(0)
	defer timer.Stop()

	var last time.Time // when the last call began
	for ctx.Err() == nil {
		now := time.Now()
		wait := time.Hour // nothing to settle or renew: wait for a signal
		for _, w := range t.workers() {
			wait = min(wait, cfg.Lease/3-w.age(now))
			if f := w.look(); f.unsettled() {
				wait = min(wait, last.Add(cfg.settleAfter(&f)).Sub(now))
			}
		}
		if wait > 0 {
			timer.Reset(wait)
			select {
			case <-timer.C:
			case <-t.settled:
			case <-ctx.Done():
			}
			continue
		}
		last = now
		switch err := t.settleOnce(ctx); {
		case err == nil:
			trouble.ok()
			pause.reset()
		case t.over(err) || ctx.Err() != nil:
			return
		default:
			trouble.fail(err)
			sleep.For(ctx, pause.next())
		}
	}
}

// settleAfter returns how long confirmed messages may stay unsettled. With a suspect message it is
// zero: if the process dies, the next owner starts at the checkpoint, so that repeated crashes
// still make progress.
func (c *Config) settleAfter(f *snapshot) time.Duration {
	if f.Suspicious {
		return 0
	}
	return c.SettleInterval
}

// progress is a mark with the data to record its success.
type progress struct {
	feeds.Mark
	worker  *worker
	version uint64
}

// progress returns the worker's mark, which is empty apart from the shard if everything is settled.
func (w *worker) progress() progress {
	f := w.look()
	p := progress{feeds.Mark{Shard: w.shard, Sent: f.sent}, w, f.mark.Version}
	if f.unsettled() {
		p.Batch, p.Done = f.mark.Batch, f.mark.Done
	}
	return p
}

func (t *epoch) settleOnce(ctx context.Context) error {
	select {
	case t.ledger <- struct{}{}:
		defer func() { <-t.ledger }()
	case <-ctx.Done():
		return ctx.Err()
	}
	start := time.Now() // leases count from before the call
	var all []progress
	var marks []feeds.Mark
	for _, w := range t.workers() {
		// Renew leases a little early if there is a call anyway.
		if f := w.look(); f.unsettled() || w.age(start) >= t.cfg.Lease/4 {
			p := w.progress()
			if p.Sent.IsZero() {
				p.Sent = start // the next attempt may have begun since
			}
			all = append(all, p)
			marks = append(marks, p.Mark)
		}
	}
	if len(marks) == 0 {
		return nil
	}
	// Half a lease leaves time for a second attempt. The call outlives ctx, which ends when nothing
	// is left to settle.
	call, cancel := context.WithTimeout(t.ctx, t.cfg.Lease/2)
	defer cancel()
	t.count.settles.Add(1)
	lost, err := t.feed.Settle(call, marks) //nolint:contextcheck // see above
	if err != nil {
		return err
	}
	for _, p := range all {
		if slices.Contains(lost, p.Shard) {
			t.fenced(p.worker)
		} else {
			p.worker.renew(start, p.version)
		}
	}
	return nil
}

// fenced drops a worker whose shard another relay has taken.
func (t *epoch) fenced(w *worker) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held[w.shard] != w || t.ended != nil {
		return
	}
	t.drop(w)
	t.publishList()
	t.count.fenced.Add(1)
	t.log.Warn("relay: shard was lost", "shard", w.shard, "err", errFenced)
}

var errFenced = errors.New("the lease expired, and another relay has taken the shard")
