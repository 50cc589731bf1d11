package sagatest

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/saga"
)

func parallelAtTheSameTime[Tx any](s *scene[Tx]) {
	here, there := make(chan struct{}), make(chan struct{})
	meet := func(own, other chan struct{}, set func(data *trip)) action[Tx] {
		return func(ctx context.Context, _ Tx, data *trip) error {
			close(own)
			select {
			case <-other:
			case <-ctx.Done():
				return ctx.Err()
			}
			set(data)
			return nil
		}
	}
	g := s.saga(
		saga.Parallel(
			saga.Step("a", meet(here, there, func(data *trip) { data.A = 1 }), nil),
			saga.Step("b", meet(there, here, func(data *trip) { data.B = 2 }), nil)),
		step[Tx]("c"))
	s.start(g, "1")
	s.mustBe(s.show("1"), saga.StepReady, saga.StepReady, saga.StepPending)
	s.run(g)
	i := s.await("1", saga.Completed)
	s.mustLog(i, "c")
	if data := read(s.t, i); data.A != 1 || data.B != 2 {
		s.t.Errorf("the change of one step is lost: %s", i.Data)
	}
}

func parallelFailure[Tx any](s *scene[Tx]) {
	began, failed := make(chan struct{}), make(chan struct{})
	g := s.saga(step[Tx]("a"), saga.Parallel(
		saga.Step("slow", func(ctx context.Context, tx Tx, data *trip) error {
			close(began)
			<-failed
			return logs[Tx]("slow")(ctx, tx, data)
		}, logs[Tx]("-slow")),
		saga.Step("bad", func(context.Context, Tx, *trip) error {
			<-began
			return postrider.Permanent(errBroken)
		}, nil),
		hears[Tx]("ok"),
	))
	s.start(g, "1")
	s.run(g)
	// The running step finishes before anything is undone, and the waiting step is cancelled.
	i := s.until("1", func(i *saga.Instance) bool {
		return i.Status == saga.Compensating && i.Steps[3].State == saga.StepCancelled
	})
	s.mustLog(i, "a")
	close(failed)
	i = s.await("1", saga.Compensated)
	s.mustLog(i, "a", "slow", "-slow", "-a")
	s.mustBe(i, saga.StepUndone, saga.StepUndone, saga.StepFailed, saga.StepCancelled)
}

func parallelConflict[Tx any](s *scene[Tx]) {
	var met, runs atomic.Int64
	add := func(_ context.Context, _ Tx, data *trip) error {
		runs.Add(1)
		met.Add(1)
		for end := time.Now().Add(time.Second); met.Load() < 2 && time.Now().Before(end); time.Sleep(time.Millisecond) {
		} // both steps read before one writes
		data.A++
		return nil
	}
	g := s.saga(saga.Parallel(saga.Step("a", add, nil), saga.Step("b", add, nil)))
	s.start(g, "1")
	s.run(g)
	i := s.await("1", saga.Completed)
	if read(s.t, i).A != 2 || runs.Load() < 3 {
		s.t.Errorf("%s after %d runs", i.Data, runs.Load())
	}
	if slices.ContainsFunc(i.Steps, func(st saga.StepState) bool { return st.Attempts > 0 }) {
		s.t.Errorf("a rerun because of a conflict counts as a failure: %+v", i.Steps)
	}
}
