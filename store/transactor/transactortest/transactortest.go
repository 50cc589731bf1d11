// Package transactortest is the conformance test suite for implementations of
// [postrider.Transactor].
//
// The tests observe transactions by the messages that they enqueue, so the suite needs the outbox
// and the store of the same database.
package transactortest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
)

// Harness provides the transactor under test.
type Harness[Tx any] struct {
	Transactor postrider.Transactor[Tx]
	Outbox     postrider.Outbox[Tx]
	Store      feeds.Store
	// Conflict is an error with which the database aborts a transaction because of another one. If
	// it is nil, the tests of conflicts are skipped.
	Conflict error
}

// Run tests a transactor. The tests run in parallel.
func Run[Tx any](t *testing.T, h Harness[Tx]) {
	for name, test := range map[string]func(scene[Tx]){
		"Commits":         scene[Tx].commits,
		"RollsBack":       scene[Tx].rollsBack,
		"Panics":          scene[Tx].panics,
		"Hooks":           scene[Tx].hooks,
		"ContextEnded":    scene[Tx].contextEnded,
		"ContextEnds":     scene[Tx].contextEnds,
		"Inner":           scene[Tx].inner,
		"ManyAtOnce":      scene[Tx].manyAtOnce,
		"ConflictRepeats": scene[Tx].conflictRepeats,
		"ConflictsEnd":    scene[Tx].conflictsEnd,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(scene[Tx]{h, t})
		})
	}
}

type scene[Tx any] struct {
	Harness[Tx]
	t *testing.T
}

func (s scene[Tx]) do(f func(ctx context.Context, tx Tx) error) error {
	return s.Transactor.Do(s.t.Context(), f)
}

// write enqueues one message and stops the test if that fails.
func (s scene[Tx]) write(ctx context.Context, tx Tx, what string) {
	s.t.Helper()
	if err := s.Outbox.Enqueue(ctx, tx, postrider.Event(what, postrider.Aggregate{Type: s.t.Name(), ID: what}, nil)); err != nil {
		s.t.Fatal(err)
	}
}

// want checks which messages of the test were committed.
func (s scene[Tx]) want(types ...string) {
	s.t.Helper()
	slices.Sort(types)
	if got := s.committed(); !slices.Equal(got, types) {
		s.t.Errorf("committed %q, want %q", got, types)
	}
}

func (s scene[Tx]) committed() (types []string) {
	s.t.Helper()
	ctx := s.t.Context()
	feed, err := s.Store.Open(ctx, postrider.NewID().String(), feeds.Member{Lease: time.Minute, Create: true})
	if err != nil {
		s.t.Fatal(err)
	}
	defer feed.Close(ctx)
	share, err := feed.Balance(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	for more := true; more; {
		more = false
		var demand []feeds.Demand
		for _, shard := range share.Shards {
			demand = append(demand, feeds.Demand{Shard: shard, Limit: 1000})
		}
		batches, err := feed.Read(ctx, demand)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, b := range batches {
			more = true
			for _, m := range b.Messages {
				if m.AggregateType == s.t.Name() {
					types = append(types, m.Type)
				}
			}
		}
	}
	slices.Sort(types)
	return types
}

func (s scene[Tx]) commits() {
	if err := s.do(func(ctx context.Context, tx Tx) error {
		s.write(ctx, tx, "one")
		s.write(ctx, tx, "two")
		return nil
	}); err != nil {
		s.t.Fatal(err)
	}
	if err := s.do(func(context.Context, Tx) error { return nil }); err != nil {
		s.t.Errorf("a transaction in which nothing happens: %v", err)
	}
	s.want("one", "two")
}

func (s scene[Tx]) rollsBack() {
	refused := errors.New("refused")
	runs := 0
	err := s.do(func(ctx context.Context, tx Tx) error {
		runs++
		s.write(ctx, tx, "never")
		return fmt.Errorf("wrapped: %w", refused)
	})
	if !errors.Is(err, refused) || errors.Is(err, postrider.ErrUncertain) || runs != 1 {
		s.t.Errorf("got %v after %d runs", err, runs)
	}
	s.want()
}

func (s scene[Tx]) panics() {
	func() {
		defer func() {
			if r := recover(); r != "at the worst moment" {
				s.t.Errorf("recovered %v", r)
			}
		}()
		_ = s.do(func(ctx context.Context, tx Tx) error {
			s.write(ctx, tx, "never")
			postrider.AfterCommit(ctx, func() { s.t.Error("AfterCommit was called") })
			panic("at the worst moment")
		})
	}()
	s.want()
	if err := s.do(func(ctx context.Context, tx Tx) error {
		s.write(ctx, tx, "next")
		return nil
	}); err != nil {
		s.t.Errorf("after a panic: %v", err)
	}
	s.want("next")
}

func (s scene[Tx]) hooks() {
	var calls []string
	add := func(ctx context.Context, what string) {
		ok := postrider.AfterCommit(ctx, func() { calls = append(calls, what+" commit") })
		if !ok || !postrider.AfterRollback(ctx, func() { calls = append(calls, what+" rollback") }) {
			s.t.Errorf("the context of a transaction is not known as such")
		}
	}
	var old context.Context
	if err := s.do(func(ctx context.Context, tx Tx) error {
		old = ctx //nolint:fatcontext // to be used after its transaction
		s.write(ctx, tx, "one")
		add(ctx, "a")
		postrider.AfterCommit(ctx, func() { s.want("one") })
		add(ctx, "b")
		if len(calls) > 0 {
			s.t.Errorf("called before the end: %q", calls)
		}
		return nil
	}); err != nil {
		s.t.Fatal(err)
	}
	if err := s.do(func(ctx context.Context, _ Tx) error {
		add(ctx, "c")
		return errors.New("refused")
	}); err == nil {
		s.t.Error("no error")
	}
	if want := []string{"a commit", "b commit", "c rollback"}; !slices.Equal(calls, want) {
		s.t.Errorf("called %q, want %q", calls, want)
	}
	for what, ctx := range map[string]context.Context{"outside": s.t.Context(), "afterwards": old} {
		if postrider.AfterCommit(ctx, func() {}) || postrider.AfterRollback(ctx, func() {}) {
			s.t.Errorf("%s of a transaction a hook was taken", what)
		}
	}
}

func (s scene[Tx]) contextEnded() {
	ctx, cancel := context.WithCancel(s.t.Context())
	cancel()
	err := s.Transactor.Do(ctx, func(context.Context, Tx) error {
		s.t.Error("the function was run")
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		s.t.Errorf("got %v", err)
	}
}

// If the context is cancelled before the function returns and Do returns an error, the transaction
// must have had no effect.
func (s scene[Tx]) contextEnds() {
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	err := s.Transactor.Do(ctx, func(ctx context.Context, tx Tx) error {
		s.write(ctx, tx, "never")
		postrider.AfterCommit(ctx, func() { s.t.Error("AfterCommit was called") })
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) || errors.Is(err, postrider.ErrUncertain) {
		s.t.Errorf("got %v", err)
	}
	s.want()
}

func (s scene[Tx]) inner() {
	var calls []string
	err := s.do(func(ctx context.Context, tx Tx) error {
		s.write(ctx, tx, "outer")
		postrider.AfterRollback(ctx, func() { calls = append(calls, "outer") })
		if err := s.Transactor.Do(ctx, func(ctx context.Context, tx Tx) error {
			postrider.AfterCommit(ctx, func() { calls = append(calls, "inner") })
			s.write(ctx, tx, "inner")
			return nil
		}); err != nil {
			s.t.Error(err)
		}
		return errors.New("refused")
	})
	if err == nil || !slices.Equal(calls, []string{"inner", "outer"}) {
		s.t.Errorf("got %v, hooks %q", err, calls)
	}
	s.want("inner")
}

func (s scene[Tx]) manyAtOnce() {
	var all sync.WaitGroup
	var want []string
	for i := range 16 {
		name := fmt.Sprint("t", i)
		if i%2 == 0 {
			want = append(want, name)
		}
		all.Go(func() {
			err := s.do(func(ctx context.Context, tx Tx) error {
				if err := s.Outbox.Enqueue(ctx, tx, postrider.Event(name, postrider.Aggregate{Type: s.t.Name(), ID: "same"}, nil)); err != nil || i%2 == 0 {
					return err
				}
				return errors.New("refused")
			})
			if (err == nil) != (i%2 == 0) {
				s.t.Errorf("transaction %d: %v", i, err)
			}
		})
	}
	all.Wait()
	s.want(want...)
}

func (s scene[Tx]) conflict() error {
	if s.Conflict == nil {
		s.t.Skip("n/a: nothing is given up for the sake of others")
	}
	return fmt.Errorf("wrapped: %w", s.Conflict)
}

func (s scene[Tx]) conflictRepeats() {
	conflict := s.conflict()
	runs, commits, rollbacks := 0, 0, 0
	if err := s.do(func(ctx context.Context, tx Tx) error {
		runs++
		postrider.AfterCommit(ctx, func() { commits++ })
		postrider.AfterRollback(ctx, func() { rollbacks++ })
		if rollbacks != runs-1 {
			s.t.Errorf("run %d began after %d rollbacks", runs, rollbacks)
		}
		s.write(ctx, tx, fmt.Sprint("run", runs))
		if runs < 3 {
			return conflict
		}
		return nil
	}); err != nil {
		s.t.Fatal(err)
	}
	if runs != 3 || commits != 1 || rollbacks != 2 {
		s.t.Errorf("%d runs, %d commits, %d rollbacks; want 3, 1, 2", runs, commits, rollbacks)
	}
	s.want("run3")
}

func (s scene[Tx]) conflictsEnd() {
	conflict := s.conflict()
	var runs atomic.Int64
	err := s.do(func(ctx context.Context, tx Tx) error {
		runs.Add(1)
		s.write(ctx, tx, "never")
		return conflict
	})
	if !errors.Is(err, s.Conflict) || runs.Load() < 2 || runs.Load() > 100 {
		s.t.Errorf("got %v after %d runs", err, runs.Load())
	}
	s.want()
}
