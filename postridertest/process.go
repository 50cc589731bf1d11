package postridertest

import (
	"context"
	"fmt"
	"sync"

	"github.com/postrider/postrider/store/feeds"
)

// errDead also matches feeds.ErrReset, so that a relay gives up at once and does not try to release
// its shards.
var errDead = fmt.Errorf("%w: the process has died (%w)", ErrInjected, feeds.ErrReset)

// Process simulates the process that a relay runs in. When it dies, nothing that the relay records
// reaches the store: its shards stay leased until the lease expires, and the next relay publishes
// unsettled messages again.
type Process struct {
	dead chan struct{}
	once sync.Once
}

// Process returns a new process. From now on, [Faults.Crash] kills it, and not the previous one.
// Start it after Run of the previous relay has returned.
func (in *Injector) Process() *Process {
	p := &Process{dead: make(chan struct{})}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.process = p
	return p
}

func (in *Injector) current() *Process {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.process
}

// Kill ends the process, at once and without cleanup.
func (p *Process) Kill() {
	if p != nil {
		p.once.Do(func() { close(p.dead) })
	}
}

// Dead reports whether the process has died.
func (p *Process) Dead() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.dead:
		return true
	default:
		return false
	}
}

// Context returns a context for Run of the relay. It ends when the process dies.
func (p *Process) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-p.dead:
			cancel()
		case <-stop:
		}
	})
	var once sync.Once
	return ctx, func() {
		once.Do(func() { close(stop) })
		watch.Wait()
		cancel()
	}
}

// Store returns a store for the relay of the process. It does no maintenance.
func (p *Process) Store(s feeds.Store) feeds.Store { return killableStore{p, s} }

type killableStore struct {
	p     *Process
	store feeds.Store
}

func (s killableStore) Open(ctx context.Context, feed string, member feeds.Member) (feeds.Feed, error) {
	if s.p.Dead() {
		return nil, errDead
	}
	f, err := s.store.Open(ctx, feed, member)
	if err != nil {
		return nil, err
	}
	return killableFeed{s.p, f}, nil
}

type killableFeed struct {
	p    *Process
	feed feeds.Feed
}

// alive calls f unless the process has died.
func alive[T any](p *Process, f func() (T, error)) (result T, err error) {
	if p.Dead() {
		return result, errDead
	}
	return f()
}

func (f killableFeed) Balance(ctx context.Context) (feeds.Share, error) {
	return alive(f.p, func() (feeds.Share, error) { return f.feed.Balance(ctx) })
}

func (f killableFeed) Read(ctx context.Context, want []feeds.Demand) ([]feeds.Batch, error) {
	return alive(f.p, func() ([]feeds.Batch, error) { return f.feed.Read(ctx, want) })
}

func (f killableFeed) Settle(ctx context.Context, marks []feeds.Mark) ([]int, error) {
	return alive(f.p, func() ([]int, error) { return f.feed.Settle(ctx, marks) })
}

func (f killableFeed) Release(ctx context.Context, marks []feeds.Mark) error {
	_, err := alive(f.p, func() (struct{}, error) { return struct{}{}, f.feed.Release(ctx, marks) })
	return err
}

// Close does nothing if the process is dead: the store notices when the leases expire.
func (f killableFeed) Close(ctx context.Context) error {
	if f.p.Dead() {
		return nil
	}
	return f.feed.Close(ctx)
}

func (f killableFeed) Defer(ctx context.Context, msgs []feeds.Deferral) error {
	_, err := alive(f.p, func() (struct{}, error) { return struct{}{}, f.feed.Defer(ctx, msgs) })
	return err
}

func (f killableFeed) Blocked(ctx context.Context, shard int) ([]string, error) {
	return alive(f.p, func() ([]string, error) { return f.feed.Blocked(ctx, shard) })
}

func (f killableFeed) Due(ctx context.Context, want feeds.DueRequest) (feeds.Due, error) {
	return alive(f.p, func() (feeds.Due, error) { return f.feed.Due(ctx, want) })
}

func (f killableFeed) Conclude(ctx context.Context, done []feeds.Conclusion) ([]string, error) {
	return alive(f.p, func() ([]string, error) { return f.feed.Conclude(ctx, done) })
}

func (f killableFeed) Suspect(ctx context.Context, start feeds.Start) (int, error) {
	return alive(f.p, func() (int, error) { return f.feed.Suspect(ctx, start) })
}
