package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/postrider/postrider"
)

// Every call of the store has a bound: a connection that has silently died must not stop the relay for good.
const (
	callTimeout  = 15 * time.Second // where nothing else sets a bound
	closeTimeout = 2 * time.Second  // a courtesy: what matters has been released, or could not be
)

var (
	errSecondRun = errors.New("relay: Run may be called only once")
	errLateStop  = errors.New("calls were still under way after DrainTimeout and were cancelled")
)

// Relay carries the messages of one feed to one publisher. Its methods are safe for concurrent use.
type Relay struct {
	store      postrider.Store
	pub        postrider.Publisher
	keepsOrder bool
	cfg        Config
	log        *slog.Logger

	started    atomic.Bool
	wake       chan struct{}                 // holds one token: somebody wants the store to be read now
	tenure     atomic.Pointer[tenure]        // the current one, for Stats
	mourned    atomic.Int64                  // when the log was last told of a dead letter,
	complained atomic.Int64                  // and when of one that was set aside
	careful    chan struct{}                 // holds one token: a message is being sent of which a crash is suspected, and it alone
	remembered map[int]map[postrider.ID]bool // by shard: what had arrived when the last tenure ended, for the first lanes of the next
	count      counters
}

// New returns a relay that is ready to run. It reports everything that is wrong with the configuration at once. The
// publisher remains the caller's, to be closed after Run has returned.
func New(store postrider.Store, pub postrider.Publisher, cfg Config) (*Relay, error) {
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
	keeper, ok := pub.(postrider.OrderKeeper)
	return &Relay{
		store:      store,
		pub:        pub,
		keepsOrder: ok && keeper.KeepsOrder(),
		cfg:        cfg,
		log:        cfg.Logger.With("feed", cfg.Feed),
		wake:       make(chan struct{}, 1),
		careful:    make(chan struct{}, 1),
	}, nil
}

// Wake makes the relay read now instead of at its next poll. An application with an embedded relay calls it after a
// commit. It never blocks, and calls in quick succession cost no more than polling at PollMin.
func (r *Relay) Wake() { signal(r.wake) }

// Run carries messages until ctx ends. It then finishes what is in flight, settles it, releases its shards and returns
// nil, or what kept the stop from being clean. Outages, of the broker as of the database, never end it. Run may be
// called once.
func (r *Relay) Run(ctx context.Context) error {
	if !r.started.CompareAndSwap(false, true) {
		return errSecondRun
	}
	feed, ok := r.open(ctx)
	if !ok {
		return nil
	}

	// hard outlives ctx by DrainTimeout: calls that are under way at the stop may end in peace, but not for ever.
	hard, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var helpers sync.WaitGroup
	helpers.Go(func() {
		select {
		case <-ctx.Done():
			sleep(hard, r.cfg.DrainTimeout)
			cancel()
		case <-hard.Done():
		}
	})
	if m, ok := r.store.(postrider.Maintainer); ok {
		helpers.Go(func() { r.repeat(ctx, r.cfg.MaintainInterval, "maintenance of the store", m.Maintain) })
	}

	if c, ok := r.store.(postrider.Canary); ok && r.cfg.Canary > 0 {
		helpers.Go(func() {
			r.repeat(ctx, r.cfg.Canary, "sending a canary", func(ctx context.Context) error { return c.Canary(ctx, r.cfg.Canary) })
		})
	}

	err := r.serve(ctx, hard, feed)
	cancel()
	helpers.Wait()

	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	if closeErr := feed.Close(last); closeErr != nil {
		err = errors.Join(err, fmt.Errorf("relay: closing the feed: %w", closeErr))
	}
	return err
}

// open joins the feed, however long that takes. It reports false when ctx ends first.
func (r *Relay) open(ctx context.Context) (postrider.Feed, bool) {
	trouble := outage{log: r.log, what: "opening the feed"}
	pause := backoff{min: r.cfg.RetryMin, max: r.cfg.RetryMax}
	for ctx.Err() == nil {
		call, cancel := context.WithTimeout(ctx, callTimeout)
		feed, err := r.store.Open(call, r.cfg.Feed, postrider.Member{Name: r.cfg.Name, Lease: r.cfg.Lease})
		cancel()
		r.setPaused(err)
		if err == nil {
			trouble.ok()
			return feed, true
		}
		if ctx.Err() == nil {
			trouble.fail(err)
		}
		sleep(ctx, pause.next())
	}
	return nil, false
}

// serve spends one tenure after another on the feed, until ctx ends.
func (r *Relay) serve(ctx, hard context.Context, feed postrider.Feed) error {
	pause := backoff{min: r.cfg.RetryMin, max: r.cfg.RetryMax}
	for {
		start := time.Now()
		t := newTenure(hard, r, feed)
		r.tenure.Store(t)
		err := t.serve(ctx)
		r.tenure.Store(nil)
		r.remembered = t.remember()
		if ctx.Err() != nil {
			if err != nil {
				err = fmt.Errorf("relay: the stop was not clean: %w", err)
			}
			return err
		}
		r.count.resets.Add(1)
		r.log.Warn("relay: starting again from what was settled", "cause", err)
		if time.Since(start) > r.cfg.RetryMax {
			pause.reset() // the first reset after a while costs no pause
			continue
		}
		sleep(ctx, pause.next())
	}
}

// repeat does something now and then, until ctx ends.
func (r *Relay) repeat(ctx context.Context, interval time.Duration, what string, do func(context.Context) error) {
	trouble := outage{log: r.log, what: what}
	for sleep(ctx, jitter(interval)) {
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

// setPaused keeps the text of an error that only an operator can do something about.
func (r *Relay) setPaused(err error) {
	if errors.Is(err, postrider.ErrForeign) || errors.Is(err, postrider.ErrSchema) {
		text := err.Error()
		r.count.paused.Store(&text)
	} else if err == nil {
		r.count.paused.Store(nil)
	}
}

const pausedFeed = "the feed is paused; to go on: postrider feeds resume"

// setPausedFeed notes whether an operator has paused the feed.
func (r *Relay) setPausedFeed(paused bool) {
	if !paused {
		return // setPaused has noted that nothing is in the way
	}
	text := pausedFeed
	r.count.paused.Store(&text)
}

// tenure is the time in which the store vouches for what it hands out: all of Run, unless a reset cuts it.
type tenure struct {
	r        *Relay
	feed     postrider.Feed
	splitter postrider.Splitter // the same, if it can split shards; otherwise nil
	hard     context.Context    // for Publish: survives a reset, so that nothing is torn out of the publisher's hands
	ctx      context.Context    // for calls of the feed: hard, cut by a reset

	mu     sync.Mutex
	cancel context.CancelFunc
	ended  error         // why the tenure was cut short
	held   map[int]*lane // by shard
	gone   map[int]*lane // by shard: the last lane that was dropped; its Publish may still be under way
	holed  map[int]bool  // by shard: something was read of it for a lane that is gone, so the next one has to give it up
	list   atomic.Pointer[[]*lane]
	run    sync.WaitGroup // the lanes

	more    chan struct{} // to the reader: a lane has room again, or is new
	settled chan struct{} // to the settler: a lane has progressed, or is new
	drained chan struct{} // to the keeper: a lane has ended
	ledger  chan struct{} // held during Settle and Release, lest one contradicts the other
	asided  chan struct{} // to the attendants: something was set aside
	aside   atomic.Bool   // something is set aside that is due, or will be
}

func newTenure(hard context.Context, r *Relay, feed postrider.Feed) *tenure {
	t := &tenure{
		r:       r,
		feed:    feed,
		hard:    hard,
		held:    make(map[int]*lane),
		gone:    make(map[int]*lane),
		holed:   make(map[int]bool),
		more:    make(chan struct{}, 1),
		settled: make(chan struct{}, 1),
		drained: make(chan struct{}, 1),
		ledger:  make(chan struct{}, 1),
		asided:  make(chan struct{}, 1),
	}
	t.splitter, _ = feed.(postrider.Splitter)
	t.ctx, t.cancel = context.WithCancel(hard)
	t.list.Store(new([]*lane))
	return t
}

// serve works until ctx ends, then drains and releases; or until the store says that the tenure is over, and returns
// why.
//
//nolint:contextcheck // what has begun lasts as long as the tenure
func (t *tenure) serve(ctx context.Context) error {
	defer t.cancel()
	loop, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(t.ctx, stop)()

	var fetching sync.WaitGroup
	fetching.Go(func() { t.keep(loop) })
	fetching.Go(func() { t.read(loop) })
	fetching.Go(func() { t.attendants(loop) })

	settling, stopSettling := context.WithCancel(t.ctx)
	defer stopSettling()
	var settler sync.WaitGroup
	settler.Go(func() { t.settle(settling) })

	<-loop.Done()
	t.drainAll()
	fetching.Wait()
	t.drainAll() // also what the last Balance has brought
	t.run.Wait() // leases are being renewed meanwhile
	stopSettling()
	settler.Wait()

	if err := t.cause(); err != nil {
		return err
	}
	late := t.hard.Err() != nil
	err := t.releaseAll(ctx)
	if late {
		err = errors.Join(errLateStop, err)
	}
	return err
}

func (t *tenure) drainAll() {
	for _, l := range t.lanes() {
		l.drain()
	}
}

// end cuts the tenure short: what has been read is void, nothing more is settled. A Publish under way ends by itself.
func (t *tenure) end(cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended != nil {
		return
	}
	t.ended = cause
	t.cancel()
	for _, l := range t.held {
		l.kill(false)
	}
}

func (t *tenure) cause() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ended
}

// over ends the tenure if err says that it is over.
func (t *tenure) over(err error) bool {
	if errors.Is(err, postrider.ErrReset) || (errors.Is(err, postrider.ErrForeign) && len(t.lanes()) > 0) {
		t.end(err)
		return true
	}
	return false
}

// lanes returns the lanes of the shards held, draining ones included. The slice is never changed.
func (t *tenure) lanes() []*lane { return *t.list.Load() }

// publishList makes lanes return what held contains. The caller holds the lock.
func (t *tenure) publishList() {
	list := make([]*lane, 0, len(t.held))
	for _, l := range t.held {
		list = append(list, l)
	}
	slices.SortFunc(list, func(a, b *lane) int { return cmp.Compare(a.shard, b.shard) }) // one order for all relays
	t.list.Store(&list)
}

// signal leaves a token in a channel that holds one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
