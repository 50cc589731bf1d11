package inboxtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/inbox"
)

func batch[Tx any](s *scene[Tx]) {
	msgs := make([]postrider.Message, 6)
	for i := range msgs {
		msgs[len(msgs)-1-i] = message(fmt.Sprint("k", i), fmt.Sprint(len(msgs)-1-i)) // the last is the oldest
	}
	s.mustHandle(msgs[1], inbox.Handled)
	s.fail(msgs[3], dead(1))
	msgs[4].Key = msgs[3].Key

	_, err := s.Store.Handle(s.ctx, consumer, msgs, false, func(ctx context.Context, tx Tx, fresh []int) error {
		if !slices.Equal(fresh, []int{0, 2, 5}) {
			s.t.Errorf("fresh are %d", fresh)
		}
		return errors.Join(errWork, s.Mark(ctx, tx, "must be undone"))
	})
	if !errors.As(err, new(*inbox.FailedError)) {
		s.t.Fatalf("got %v, want a FailedError", err)
	}
	s.wantDeferred("3 dead") // the failed batch deferred no waiting message either

	got, err := s.handle(msgs...)
	s.wantVerdicts(got, err, inbox.Handled, inbox.Repeated, inbox.Handled, inbox.Repeated, inbox.Waiting, inbox.Handled)
	s.wantMarks("1", "0", "2", "5")
	s.wantDeferred("3 dead", "4 waiting")

	_, err = s.Store.Handle(s.ctx, consumer, msgs, false, func(context.Context, Tx, []int) error {
		s.t.Error("work without anything fresh")
		return nil
	})
	if err != nil {
		s.t.Error(err)
	}
}

func twiceInABatch[Tx any](s *scene[Tx]) {
	a, b := message("a", "a"), message("b", "b")
	got, err := s.handle(a, b, a, a)
	s.wantVerdicts(got, err, inbox.Handled, inbox.Handled, inbox.Repeated, inbox.Repeated)
	s.wantMarks("a", "b")

	s.fail(message("k", "head"), dead(1))
	waiting := message("k", "c")
	got, err = s.handle(waiting, b, waiting)
	s.wantVerdicts(got, err, inbox.Waiting, inbox.Repeated, inbox.Repeated)
	ahead := s.fromFuture("", "d")
	got, err = s.handle(ahead, ahead)
	s.wantVerdicts(got, err, inbox.Late, inbox.Repeated)
	s.wantDeferred("head dead", "c waiting", "d dead")
}

// batchesInAnyOrder checks that overlapping batches do not deadlock.
func batchesInAnyOrder[Tx any](s *scene[Tx]) {
	const rounds, size, workers = 5, 20, 4
	for round := range rounds {
		msgs := make([]postrider.Message, size)
		for i := range msgs {
			msgs[i] = message("", fmt.Sprint(round, ".", i))
		}
		var run sync.WaitGroup
		for worker := range workers {
			run.Go(func() {
				own := slices.Clone(msgs)
				if worker%2 == 1 {
					slices.Reverse(own)
				}
				if _, err := s.handle(own...); err != nil {
					s.t.Error(err)
				}
			})
		}
		run.Wait()
	}
	marks := s.Marks(s.ctx)
	slices.Sort(marks)
	if n := len(slices.Compact(slices.Clone(marks))); n != rounds*size || len(marks) != n {
		s.t.Errorf("%d effects of %d messages, want %d of each", len(marks), n, rounds*size)
	}
}
