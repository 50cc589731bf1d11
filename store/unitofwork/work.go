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

// ErrNoUnit is returned by [Track] if the context does not belong to a running unit of work.
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

// Do is [Work.Do] without a Work.
func Do[Tx any](ctx context.Context, transactor postrider.Transactor[Tx], outbox postrider.Outbox[Tx],
	f func(ctx context.Context, tx Tx) error) error {
	return New(transactor, outbox).Do(ctx, f)
}

// Do implements [postrider.Transactor]. It runs f in a transaction and, just before the commit,
// writes the events of all tracked aggregates in the order in which they were recorded.
//
// A nested Do is a separate unit. It writes only the events recorded within it; events that an
// aggregate recorded before belong to the outer unit.
func (w *Work[Tx]) Do(ctx context.Context, f func(ctx context.Context, tx Tx) error) error {
	began := moments.Load()
	nested := underWay(ctx)
	var runs []*unit
	failed := int64(math.MaxInt64) // events up to this number, since began, belong to failed runs
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
		// Register before f does: its hooks may start the next unit.
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
	began   int64 // number of the last event before this run
	after   int64 // events up to this number belong to the outer unit
	upTo    int64 // number of the last event that was collected
}

// underWay reports whether ctx belongs to a running unit of work.
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

// collect ends tracking and returns the messages whose numbers satisfy counts, in the order of
// recording.
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

// written removes the committed events from the aggregates.
func (u *unit) written() { u.forget(u.after, u.upTo) }

func (u *unit) forget(after, upTo int64) {
	for e := range u.tracked {
		e.forget(after, upTo)
	}
}

// Track makes the unit of work of ctx write the events of the aggregates: those recorded already,
// and those recorded before the unit's function returns. Tracking an aggregate twice has no effect.
// Outside of a unit, Track returns [ErrNoUnit].
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
