package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/reconcile"
)

// Reconcilers keeps the state of reconcilers in memory, for one process. Tx is the transaction type
// of the application. What is counted in a transaction is kept if the transaction commits; see
// [postrider.AfterCommit].
type Reconcilers[Tx any] struct {
	mu    sync.Mutex
	jobs  map[string]*reconcilerJob
	again map[[2]string]told // repeated facts, by job and key
}

var _ reconcile.Store[*Tx] = (*Reconcilers[*Tx])(nil)

type reconcilerJob struct {
	reconcile.State
	token int64
	lease time.Duration
}

// told is the number of repetitions of a fact, and the time of the last one.
type told struct {
	n  int
	at time.Time
}

// NewReconcilers returns a store without jobs, for an application with its own transaction type.
// For transactions of this package, use [DB.Reconciliations].
func NewReconcilers[Tx any]() *Reconcilers[Tx] {
	return &Reconcilers[Tx]{jobs: make(map[string]*reconcilerJob), again: make(map[[2]string]told)}
}

func (p *Reconcilers[Tx]) locked(ctx context.Context, do func(now time.Time) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return do(time.Now().UTC())
}

// Announce implements [reconcile.Store].
func (p *Reconcilers[Tx]) Announce(ctx context.Context, job, schedule string, first func(time.Time) time.Time) error {
	return p.locked(ctx, func(now time.Time) error {
		j := p.jobs[job]
		if j == nil {
			j = &reconcilerJob{State: reconcile.State{Job: job}}
			p.jobs[job] = j
		}
		if j.Schedule != schedule {
			j.Schedule, j.Next = schedule, first(now).UTC()
		}
		return nil
	})
}

// Claim implements [reconcile.Store].
func (p *Reconcilers[Tx]) Claim(ctx context.Context, job, holder string, lease time.Duration, at bool) (reconcile.Claim, error) {
	var c reconcile.Claim
	err := p.locked(ctx, func(now time.Time) error {
		j := p.jobs[job]
		switch {
		case j == nil:
			return fmt.Errorf("%w: %q", reconcile.ErrNoJob, job)
		case j.Until.After(now):
			return &reconcile.NotYetError{Job: job, Holder: j.Holder, Wait: j.Until.Sub(now)}
		case j.Next.After(now) && !at:
			return &reconcile.NotYetError{Job: job, Wait: j.Next.Sub(now)}
		}
		j.token++
		j.Holder, j.lease, j.Until = holder, lease, now.Add(lease)
		j.Last = reconcile.Run{Started: now, Holder: holder}
		c = reconcile.Claim{Job: job, Holder: holder, Token: j.token, Now: now, Lease: lease}
		return nil
	})
	return c, err
}

// held returns the job of a claim that is still valid. The caller holds the lock.
func (p *Reconcilers[Tx]) held(c reconcile.Claim) (*reconcilerJob, error) {
	j := p.jobs[c.Job]
	if j == nil || j.token != c.Token || j.Holder == "" {
		return nil, reconcile.ErrLost
	}
	return j, nil
}

// whenCommitted calls do after the transaction of ctx commits or, if ctx has none, now.
func (p *Reconcilers[Tx]) whenCommitted(ctx context.Context, do func()) {
	if !postrider.AfterCommit(ctx, func() { p.mu.Lock(); defer p.mu.Unlock(); do() }) {
		do()
	}
}

// Count implements [reconcile.Store].
func (p *Reconcilers[Tx]) Count(ctx context.Context, _ Tx, c reconcile.Claim, n reconcile.Counts) error {
	return p.locked(ctx, func(now time.Time) error {
		j, err := p.held(c)
		if err != nil {
			return err
		}
		j.Until = now.Add(j.lease)
		p.whenCommitted(ctx, func() {
			j.Total.Add(n)
			if j.token == c.Token {
				j.Last.Add(n)
			}
		})
		return nil
	})
}

// Again implements [reconcile.Store].
func (p *Reconcilers[Tx]) Again(ctx context.Context, _ Tx, c reconcile.Claim, keys []string, a reconcile.Again) ([]int, error) {
	numbers := make([]int, len(keys))
	err := p.locked(ctx, func(now time.Time) error {
		noted := make(map[[2]string]told)
		for i, key := range keys {
			id := [2]string{c.Job, key}
			t, known := p.again[id]
			switch {
			case !known && a.AtOnce:
				t = told{min(1, a.Max), now}
			case !known:
				t = told{0, now}
			case t.n < a.Max && !t.at.After(now.Add(-a.After)):
				t = told{t.n + 1, now}
			default:
				continue
			}
			noted[id], numbers[i] = t, t.n
		}
		p.whenCommitted(ctx, func() {
			for id, t := range noted {
				p.again[id] = t
			}
		})
		return nil
	})
	return numbers, err
}

// Finish implements [reconcile.Store].
func (p *Reconcilers[Tx]) Finish(ctx context.Context, c reconcile.Claim, next time.Time, forget time.Duration, failure string) error {
	return p.locked(ctx, func(now time.Time) error {
		j, err := p.held(c)
		if err != nil {
			return err
		}
		j.Holder, j.Until = "", time.Time{}
		if !next.IsZero() {
			j.Next = next.UTC()
		}
		j.Runs++
		if failure != "" {
			j.Failed++
		}
		j.Last.Finished, j.Last.Error = now, failure
		for id, t := range p.again {
			if id[0] == c.Job && t.at.Before(now.Add(-forget)) {
				delete(p.again, id)
			}
		}
		return nil
	})
}

// Jobs implements [reconcile.Store].
func (p *Reconcilers[Tx]) Jobs(ctx context.Context) ([]reconcile.State, error) {
	var all []reconcile.State
	err := p.locked(ctx, func(now time.Time) error {
		for _, j := range p.jobs {
			s := j.State
			if !s.Until.After(now) {
				s.Holder, s.Until = "", time.Time{}
			}
			all = append(all, s)
		}
		slices.SortFunc(all, func(a, b reconcile.State) int { return cmp.Compare(a.Job, b.Job) })
		return nil
	})
	return all, err
}
