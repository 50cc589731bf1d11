package simulation_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/postrider/postrider/store/feeds"
)

// database is the store from the point of view of one process.
type database struct{ p *process }

// feed is a membership from the point of view of one process.
type feed struct {
	p     *process
	inner feeds.Feed

	mu         sync.Mutex
	told       []int // the shards that the relay believes it owns
	untold     []int // those that it has lost without knowing it
	generation int   // of the database, as last known to the relay
}

var _ feeds.Maintainer = database{}

// Open implements [feeds.Store].
func (d database) Open(ctx context.Context, name string, m feeds.Member) (feeds.Feed, error) {
	f := &feed{p: d.p}
	err := d.p.call(ctx, "Open", func() (err error) {
		f.inner, err = d.p.w.store.Open(context.Background(), name, m)
		return err
	}, false)
	if err != nil {
		return nil, err
	}
	f.generation = d.p.w.generation()
	d.p.w.join(f)
	return f, nil
}

// Maintain implements [feeds.Maintainer].
func (d database) Maintain(ctx context.Context) error {
	return d.p.call(ctx, "Maintain", func() error { return d.p.w.store.Maintain(context.Background()) }, false)
}

// call makes a call to the database that may or may not have its effect, and may or may not get a
// response.
func (p *process) call(ctx context.Context, op string, effect func() error, mayBeLate bool) error {
	if !p.run() {
		return errDead
	}
	w := p.w
	r := p.chance(op)
	what := ""
	if !w.healed() {
		what = w.plan.Store.draw(r)
	}
	latency := time.Duration(r.Int64N(int64(w.plan.Config.Lease / 500)))
	if what == "slow" {
		latency = w.plan.Config.Lease * time.Duration(1+r.IntN(60)) / 100
	}
	before := time.Duration(r.Int64N(int64(latency + 1)))
	fault := func(err error) error {
		w.model.fault("%s: %s %s: %v", p.name, op, what, err)
		return err
	}
	if err := p.sleep(ctx, before); err != nil {
		return fault(err)
	}
	if hangs, down := w.databaseIsDown(); down {
		what = "down"
		if hangs {
			<-ctx.Done()
		}
		return fault(errInjected)
	}
	switch what {
	case "fails":
		return fault(errInjected)
	case "late":
		if mayBeLate {
			w.later(w.plan.Config.Lease*time.Duration(1+r.IntN(20))/10, func() { _ = effect() })
		}
		<-ctx.Done()
		return fault(ctx.Err())
	case "hangs":
		if r.IntN(2) == 0 {
			_ = effect()
		}
		<-ctx.Done()
		return fault(ctx.Err())
	}
	err := effect()
	if what == "unknown" {
		return fault(errInjected)
	}
	if late := p.sleep(ctx, latency-before); late != nil {
		return fault(late)
	}
	if !p.run() {
		return errDead
	}
	return err
}

// ask is call for a feed, whose database may have crashed meanwhile.
func (f *feed) ask(ctx context.Context, op string, effect func() error, mayBeLate bool) error {
	f.mu.Lock()
	generation := f.generation
	f.mu.Unlock()
	crashed := func() bool { return f.p.w.generation() != generation }
	err := f.p.call(ctx, op, func() error {
		if crashed() {
			return feeds.ErrReset
		}
		return effect()
	}, mayBeLate)
	if err == nil && crashed() {
		err = feeds.ErrReset
	}
	if errors.Is(err, feeds.ErrReset) {
		switch op {
		case "Defer", "Conclude", "Blocked", "Suspect": // they only fail
			return errInjected
		}
		f.p.w.model.fault("%s: %s: learns of a crash", f.p.name, op)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.generation = f.p.w.generation()
		f.told, f.untold = nil, nil
	}
	return err
}

// Balance implements [feeds.Feed]. The memory store assumes that its responses arrive. If one is
// lost, and with it the news that a shard was lost, the relay must learn that before it gets the
// shard again.
func (f *feed) Balance(ctx context.Context) (feeds.Share, error) {
	var share feeds.Share
	err := f.ask(ctx, "Balance", func() (err error) {
		share, err = f.inner.Balance(context.Background())
		if err != nil {
			return err
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, shard := range f.told {
			if !slices.Contains(share.Shards, shard) && !slices.Contains(f.untold, shard) {
				f.untold = append(f.untold, shard)
			}
		}
		f.giveUp(f.untold)
		share.Shards = slices.DeleteFunc(share.Shards, func(shard int) bool { return slices.Contains(f.untold, shard) })
		return nil
	}, false)
	if err != nil {
		return feeds.Share{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told, f.untold = slices.Clone(share.Shards), nil
	return share, nil
}

// giveUp releases shards without any progress, as if their owner had died.
func (f *feed) giveUp(shards []int) {
	var marks []feeds.Mark
	for _, shard := range shards {
		marks = append(marks, feeds.Mark{Shard: shard, Sent: f.p.w.begun}) // it does not know what it has sent
	}
	_ = f.inner.Release(context.Background(), marks)
}

// Read implements [feeds.Feed]. Messages of a lost response count as unread.
func (f *feed) Read(ctx context.Context, want []feeds.Demand) ([]feeds.Batch, error) {
	if err := f.ask(ctx, "Read", func() error { return nil }, false); err != nil {
		return nil, err
	}
	return f.inner.Read(context.Background(), want)
}

// Settle implements [feeds.Feed].
func (f *feed) Settle(ctx context.Context, marks []feeds.Mark) (lost []int, err error) {
	err = f.ask(ctx, "Settle", func() (err error) {
		lost, err = f.inner.Settle(context.Background(), marks)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.untold = append(f.untold, lost...)
		return err
	}, true)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	gone := func(shard int) bool { return slices.Contains(lost, shard) }
	f.told, f.untold = slices.DeleteFunc(f.told, gone), slices.DeleteFunc(f.untold, gone)
	return lost, nil
}

// Release implements [feeds.Feed].
func (f *feed) Release(ctx context.Context, marks []feeds.Mark) error {
	return f.ask(ctx, "Release", func() error { return f.inner.Release(context.Background(), marks) }, false)
}

// Close implements [feeds.Feed].
func (f *feed) Close(ctx context.Context) error {
	return f.ask(ctx, "Close", func() error { return f.inner.Close(context.Background()) }, false)
}

// Defer implements [feeds.Deferrer].
func (f *feed) Defer(ctx context.Context, msgs []feeds.Deferral) error {
	return f.ask(ctx, "Defer", func() error { return f.inner.Defer(context.Background(), msgs) }, false)
}

// Blocked implements [feeds.Deferrer].
func (f *feed) Blocked(ctx context.Context, shard int) (keys []string, err error) {
	err = f.ask(ctx, "Blocked", func() (err error) {
		keys, err = f.inner.Blocked(context.Background(), shard)
		return err
	}, false)
	return keys, err
}

// Due implements [feeds.Deferrer].
func (f *feed) Due(ctx context.Context, want feeds.DueRequest) (due feeds.Due, err error) {
	err = f.ask(ctx, "Due", func() (err error) {
		due, err = f.inner.Due(context.Background(), want)
		return err
	}, false)
	if err != nil {
		return feeds.Due{}, err
	}
	return due, nil
}

// Conclude implements [feeds.Deferrer].
func (f *feed) Conclude(ctx context.Context, done []feeds.Conclusion) (free []string, err error) {
	err = f.ask(ctx, "Conclude", func() (err error) {
		free, err = f.inner.Conclude(context.Background(), done)
		return err
	}, false)
	if err != nil {
		return nil, err
	}
	return free, nil
}

// Suspect implements [feeds.Deferrer].
func (f *feed) Suspect(ctx context.Context, start feeds.Start) (started int, err error) {
	err = f.ask(ctx, "Suspect", func() (err error) {
		started, err = f.inner.Suspect(context.Background(), start)
		return err
	}, false)
	return started, err
}
