package unitofwork

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/postrider/postrider"
)

// ErrNoUnit is returned by [Track] when its context is not that of a unit of work that is under way.
var ErrNoUnit = errors.New("unitofwork: no unit of work is under way in this context")

// Work runs units of work. It is safe for concurrent use.
type Work[Tx any] struct {
	transactor postrider.Transactor[Tx]
	outbox     postrider.Outbox[Tx]
}

// New returns a Work that opens transactions with transactor and writes events with outbox.
func New[Tx any](transactor postrider.Transactor[Tx], outbox postrider.Outbox[Tx]) *Work[Tx] {
	return &Work[Tx]{transactor, outbox}
}

// Do is [Work.Do] for those who have no Work at hand.
func Do[Tx any](ctx context.Context, transactor postrider.Transactor[Tx], outbox postrider.Outbox[Tx],
	f func(ctx context.Context, tx Tx) error) error {
	return New(transactor, outbox).Do(ctx, f)
}

// Do implements [postrider.Transactor]: it runs f in a transaction, and writes the events of all aggregates that were tracked
// as the last thing before the commit, in the order in which they were recorded. A Do inside of f is a unit of its own: it writes what was
// recorded within it, and leaves alone what an aggregate had recorded before, which stands or falls with the unit around it.
func (w *Work[Tx]) Do(ctx context.Context, f func(ctx context.Context, tx Tx) error) error {
	began := moments.Load()
	nested := underWay(ctx)
	var runs []*unit
	failed := int64(math.MaxInt64) // the moment up to which nothing has come of it
	defer func() {
		for _, u := range runs {
			u.forget(began, failed)
		}
	}()
	err := w.transactor.Do(ctx, func(ctx context.Context, tx Tx) error {
		u := &unit{tracked: make(map[*Events]bool), began: moments.Load(), after: math.MinInt64}
		if nested {
			u.after = u.began
		}
		runs = append(runs, u)
		defer u.close()
		// Before all that f asks for, which may begin the next unit.
		postrider.AfterCommit(ctx, u.written)
		if err := f(context.WithValue(ctx, unitKey{}, u), tx); err != nil {
			return err
		}
		msgs := u.collect(func(at int64) bool { return at > u.began || at <= began && !nested })
		if len(msgs) == 0 {
			return nil
		}
		if err := w.outbox.Enqueue(ctx, tx, msgs...); err != nil {
			return fmt.Errorf("unitofwork: write %d events: %w", len(msgs), err)
		}
		return nil
	})
	if err == nil && len(runs) > 0 {
		last := runs[len(runs)-1]
		last.written()
		failed = last.began
	}
	return err
}

type unitKey struct{}

// unit is one run of a unit of work.
type unit struct {
	mu      sync.Mutex
	tracked map[*Events]bool
	closed  bool
	began   int64 // what earlier runs have recorded is not younger
	after   int64 // what was recorded up to then is not its own
	upTo    int64 // the moment up to which it has collected
}

// underWay reports whether ctx belongs to a unit of work that has not ended.
func underWay(ctx context.Context) bool {
	u, ok := ctx.Value(unitKey{}).(*unit)
	if !ok {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return !u.closed
}

// close ends tracking.
func (u *unit) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed = true
}

// collect ends tracking and returns the messages of the moments that count, in the order of recording.
func (u *unit) collect(counts func(at int64) bool) []postrider.Message {
	u.close()
	u.upTo = moments.Load()
	var found []event
	for e := range u.tracked {
		for _, r := range e.recorded {
			if counts(r.at) {
				found = append(found, r)
			}
		}
	}
	slices.SortFunc(found, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	msgs := make([]postrider.Message, len(found))
	for i, r := range found {
		msgs[i] = r.message
	}
	return msgs
}

// written takes from the aggregates what has been committed.
func (u *unit) written() { u.forget(u.after, u.upTo) }

func (u *unit) forget(after, upTo int64) {
	for e := range u.tracked {
		e.forget(after, upTo)
	}
}

// Track has the events of the aggregates written by the unit of work that ctx belongs to: those recorded already, and those
// that will be before its function returns. An aggregate that is tracked twice counts once. Outside of a unit it returns
// [ErrNoUnit].
func Track(ctx context.Context, aggregates ...Aggregate) error {
	u, ok := ctx.Value(unitKey{}).(*unit)
	if !ok {
		return ErrNoUnit
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return ErrNoUnit
	}
	for _, a := range aggregates {
		u.tracked[a.events()] = true
	}
	return nil
}
