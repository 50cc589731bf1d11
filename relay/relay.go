package relay

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/sleep"
	"github.com/postrider/postrider/store/feeds"
)

// closeTimeout limits feed.Close at the end of Run. It can be short: the shards have been released
// by then, or could not be.
const closeTimeout = 2 * time.Second

var errSecondRun = errors.New("relay: Run may be called only once")

// Relay publishes the messages of one feed through one publisher. It is safe for concurrent use.
type Relay struct {
	*shared
	store   feeds.Store
	started atomic.Bool
	epoch   atomic.Pointer[epoch] // the current one, for Stats
}

// New returns a relay that is ready to run, or all errors of the configuration joined. The caller
// keeps ownership of the publisher and closes it after Run has returned.
func New(store feeds.Store, pub postrider.Publisher, cfg Config) (*Relay, error) {
	var errs []error
	if store == nil {
		errs = append(errs, errors.New("relay: store is nil"))
	}
	if pub == nil {
		errs = append(errs, errors.New("relay: publisher is nil"))
	}
	cfg = cfg.WithDefaults()
	if err := errors.Join(append(errs, cfg.validate())...); err != nil {
		return nil, err
	}
	return &Relay{store: store, shared: newShared(cfg, pub)}, nil
}

// Wake makes the relay read now instead of at its next poll. An application with an embedded relay
// calls it after a commit. It never blocks. Frequent calls cost no more than polling at PollMin.
func (r *Relay) Wake() { signal(r.wake) }

// Run publishes messages until ctx ends. It then finishes the calls in flight, settles them and
// releases its shards. It returns nil, or the reason that the stop was not clean.
//
// Outages of the broker or the database do not end Run. A feed that does not exist or that has
// another destination does: see [feeds.ErrNoFeed] and [feeds.ErrDestination]. Run may be called
// once.
func (r *Relay) Run(ctx context.Context) error {
	if !r.started.CompareAndSwap(false, true) {
		return errSecondRun
	}
	feed, err := r.open(ctx)
	if feed == nil {
		return err
	}

	// hard outlives ctx by DrainTimeout, so that calls that are running at the stop can finish.
	hard, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var helpers sync.WaitGroup
	helpers.Go(func() {
		select {
		case <-ctx.Done():
			sleep.For(hard, r.cfg.DrainTimeout)
			cancel()
		case <-hard.Done():
		}
	})
	if m, ok := r.store.(feeds.Maintainer); ok {
		helpers.Go(func() { r.repeat(ctx, r.cfg.MaintainInterval, "maintenance of the store", m.Maintain) })
	}

	helpers.Go(func() { r.watch.Run(ctx, func(error) {}) })
	if c, ok := r.store.(feeds.Canary); ok && r.cfg.Canary > 0 {
		helpers.Go(func() {
			r.repeat(ctx, r.cfg.Canary, "sending a canary", func(ctx context.Context) error { return c.Canary(ctx, r.cfg.Canary) })
		})
	}

	err = r.serve(ctx, hard, feed)
	cancel()
	helpers.Wait()

	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	if closeErr := feed.Close(last); closeErr != nil {
		err = errors.Join(err, fmt.Errorf("relay: closing the feed: %w", closeErr))
	}
	return err
}

// open joins the feed and retries during outages until ctx ends. It returns a nil feed if ctx ends
// first, and an error if the feed does not exist or has another destination: those are
// configuration mistakes, and waiting would hide them.
func (r *Relay) open(ctx context.Context) (feeds.Feed, error) {
	trouble := outage{log: r.log, what: "opening the feed"}
	pause := backoff{policy: r.cfg.Outage}
	for ctx.Err() == nil {
		call, cancel := context.WithTimeout(ctx, callTimeout)
		feed, err := r.store.Open(call, r.cfg.Feed, r.cfg.Member())
		cancel()
		r.setPaused(err)
		if err == nil {
			trouble.ok()
			return feed, nil
		}
		if errors.Is(err, feeds.ErrNoFeed) || errors.Is(err, feeds.ErrDestination) {
			return nil, fmt.Errorf("relay: %w", err)
		}
		if ctx.Err() == nil {
			trouble.fail(err)
		}
		sleep.For(ctx, pause.next())
	}
	return nil, nil
}

// serve runs one epoch after another until ctx ends.
func (r *Relay) serve(ctx, hard context.Context, feed feeds.Feed) error {
	pause := backoff{policy: r.cfg.Outage}
	var remembered map[int]map[postrider.ID]bool
	for {
		start := time.Now()
		t := newEpoch(hard, r.shared, feed, remembered)
		r.epoch.Store(t)
		err := t.serve(ctx)
		r.epoch.Store(nil)
		remembered = t.recall()
		if ctx.Err() != nil {
			if err != nil {
				err = fmt.Errorf("relay: the stop was not clean: %w", err)
			}
			return err
		}
		r.count.resets.Add(1)
		r.log.Warn("relay: starting again from what was settled", "cause", err)
		if time.Since(start) > r.cfg.Outage.Longest() {
			pause.reset() // after a long epoch, restart without backoff
			continue
		}
		sleep.For(ctx, pause.next())
	}
}

// repeat calls do at a jittered interval until ctx ends, and logs its failures.
func (r *Relay) repeat(ctx context.Context, interval time.Duration, what string, do func(context.Context) error) {
	trouble := outage{log: r.log, what: what}
	for sleep.For(ctx, jitter(interval)) {
		call, cancel := context.WithTimeout(ctx, max(interval, callTimeout))
		err := do(call)
		cancel()
		switch {
		case err == nil:
			trouble.ok()
		case ctx.Err() == nil:
			trouble.fail(err)
		}
	}
}

// Stats returns the relay's counters. It may be called at any time, also before and after Run.
func (r *Relay) Stats() Stats {
	c := &r.count
	s := Stats{
		Published: c.published.Load(),
		Failed:    c.failed.Load(),
		Refused:   c.refused.Load(),
		Retried:   c.retried.Load(),
		Deferred:  c.deferred.Load(),
		Dead:      c.dead.Load(),
		Reads:     c.reads.Load(),
		Settles:   c.settles.Load(),
		Balances:  c.balances.Load(),
		Fenced:    c.fenced.Load(),
		Resets:    c.resets.Load(),
		Quota:     int(c.quota.Load()),
		Members:   int(c.members.Load()),
	}
	if p := c.paused.Load(); p != nil {
		s.Paused = *p
	}
	if t := r.epoch.Load(); t != nil {
		for _, w := range t.workers() {
			f := w.look()
			s.Shards++
			s.Buffered += f.Buffered
			s.Bytes += f.Bytes
			s.Blocked += f.BlockedKeys
			s.Held += f.HeldNames
			if f.Failing {
				s.Failing++
			}
		}
	}
	return s
}
