package sagatest

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/saga"
)

func read(t *testing.T, i *saga.Instance) (data trip) {
	t.Helper()
	if err := json.Unmarshal(i.Data, &data); err != nil {
		t.Fatal(err)
	}
	return data
}

func completes[Tx any](s *scene[Tx]) {
	var keys []string
	g := s.saga(step[Tx]("a"), saga.Step("b", func(ctx context.Context, _ Tx, data *trip) error {
		keys = append(keys, saga.Key(ctx))
		data.Log = append(data.Log, "b")
		if len(keys) == 1 {
			return errBroken
		}
		return nil
	}, nil).Retry(quick), step[Tx]("c"))
	s.start(g, "1")
	before := s.show("1")
	s.mustBe(before, saga.StepReady, saga.StepPending, saga.StepPending)
	s.run(g)
	i := s.await("1", saga.Completed)
	s.mustLog(i, "a", "b", "c")
	s.mustBe(i, saga.StepDone, saga.StepDone, saga.StepDone)
	if i.Version <= before.Version || i.Finished.IsZero() || i.Cause != "" {
		s.t.Errorf("%+v", i)
	}
	for n, st := range i.Steps {
		if st.Reached.IsZero() || st.Ended.Before(st.Reached) || !st.Due.IsZero() || st.Order != n+1 {
			s.t.Errorf("%+v", st)
		}
	}
	if len(keys) != 2 || keys[0] != "trip%20Completes/1/b" || keys[1] != keys[0] {
		s.t.Errorf("keys are %q", keys)
	}
	if saga.Key(s.t.Context()) != "" {
		s.t.Error("a key without a step")
	}
}

func startIsPartOfTransaction[Tx any](s *scene[Tx]) {
	g := s.saga(step[Tx]("a"))
	s.run(g)
	err := s.Store.Do(s.t.Context(), func(ctx context.Context, tx Tx) error {
		if err := g.Start(ctx, tx, "1", trip{}); err != nil {
			return err
		}
		return errBroken
	})
	if !errors.Is(err, errBroken) {
		s.t.Errorf("got %v", err)
	}
	if _, err := s.Admin.Show(s.t.Context(), s.name, "1"); !errors.Is(err, saga.ErrNotFound) {
		s.t.Errorf("got %v", err)
	}
	s.start(g, "1")
	s.mustLog(s.await("1", saga.Completed), "a")
}

func sameIDTwice[Tx any](s *scene[Tx]) {
	g := s.saga(step[Tx]("a"))
	s.do(func(ctx context.Context, tx Tx) error {
		if err := g.Start(ctx, tx, "1", trip{}); err != nil {
			return err
		}
		if err := g.Start(ctx, tx, "1", trip{}); !errors.Is(err, saga.ErrExists) {
			s.t.Errorf("got %v", err)
		}
		return g.Start(ctx, tx, "2", trip{}) // the transaction is still usable
	})
	s.do(func(ctx context.Context, tx Tx) error {
		if err := g.Start(ctx, tx, "1", trip{A: 7}); !errors.Is(err, saga.ErrExists) {
			s.t.Errorf("got %v", err)
		}
		return nil
	})
	s.run(g)
	s.mustLog(s.await("1", saga.Completed), "a")
	s.mustLog(s.await("2", saga.Completed), "a")
	// The ID stays taken after the saga finishes. Under another name it is another saga's ID.
	s.do(func(ctx context.Context, tx Tx) error {
		if err := g.Start(ctx, tx, "1", trip{}); !errors.Is(err, saga.ErrExists) {
			s.t.Errorf("got %v", err)
		}
		other, err := saga.New(s.Store, s.name+" other", step[Tx]("a"))
		if err != nil {
			return err
		}
		return other.Start(ctx, tx, "1", trip{})
	})
	for _, id := range []string{"", "a\x00", "\xff", strings.Repeat("x", 201)} {
		s.do(func(ctx context.Context, tx Tx) error {
			if err := g.Start(ctx, tx, id, trip{}); err == nil {
				s.t.Errorf("ID %q was accepted", id)
			}
			return nil
		})
	}
}

func retriesWithFreshData[Tx any](s *scene[Tx]) {
	tries := 0
	g := s.saga(saga.Step("a", func(_ context.Context, _ Tx, data *trip) error {
		tries++
		data.Log = append(data.Log, "a")
		if tries < 3 {
			return errBroken
		}
		return nil
	}, nil).Retry(quick))
	s.start(g, "1")
	s.run(g)
	i := s.await("1", saga.Completed)
	s.mustLog(i, "a")
	if st := i.Steps[0]; tries != 3 || st.Attempts != 2 || st.Error != errBroken.Error() {
		s.t.Errorf("%d tries, %+v", tries, st)
	}
}

func compensatesInReverse[Tx any](s *scene[Tx]) {
	g := s.saga(step[Tx]("a"), saga.Step("b", logs[Tx]("b"), nil), step[Tx]("c"), breaks[Tx]("d"), step[Tx]("e"))
	s.start(g, "1")
	s.run(g)
	i := s.await("1", saga.Compensated)
	s.mustLog(i, "a", "b", "c", "-c", "-a")
	s.mustBe(i, saga.StepUndone, saga.StepUndone, saga.StepUndone, saga.StepFailed, saga.StepPending)
	if i.Steps[3].Attempts != 3 || i.Cause != "d: broken" || i.Finished.IsZero() {
		s.t.Errorf("%+v", i)
	}
}

func permanentAtOnce[Tx any](s *scene[Tx]) {
	g := s.saga(step[Tx]("a"), saga.Step("b", func(context.Context, Tx, *trip) error { return postrider.Permanent(errBroken) }, nil))
	s.start(g, "1")
	s.run(g)
	i := s.await("1", saga.Compensated)
	s.mustLog(i, "a", "-a")
	if i.Steps[1].Attempts != 1 {
		s.t.Errorf("%+v", i.Steps[1])
	}
}

func panicIsAFailure[Tx any](s *scene[Tx]) {
	g := s.saga(step[Tx]("a"), saga.Step("b", func(context.Context, Tx, *trip) error { panic("oh") }, nil).Retry(quick))
	s.start(g, "1")
	s.run(g)
	i := s.await("1", saga.Compensated)
	s.mustLog(i, "a", "-a")
	if !strings.Contains(i.Steps[1].Error, "panic: oh") {
		s.t.Errorf("%+v", i.Steps[1])
	}
}

func stepTimeout[Tx any](s *scene[Tx]) {
	g := s.saga(step[Tx]("a"), saga.Step("b", func(ctx context.Context, _ Tx, _ *trip) error {
		<-ctx.Done()
		return ctx.Err()
	}, nil).Timeout(5*time.Millisecond).Retry(retry.Policy{Attempts: 2, First: time.Millisecond}))
	s.start(g, "1")
	s.run(g)
	i := s.await("1", saga.Compensated)
	s.mustLog(i, "a", "-a")
	if !strings.Contains(i.Cause, "longer than 5ms") {
		s.t.Errorf("cause is %q", i.Cause)
	}
}

func deadline[Tx any](s *scene[Tx]) {
	const within = 2 * time.Second // enough for the first step to begin, even on a busy machine
	g := s.saga(step[Tx]("a"), breaks[Tx]("b").Retry(retry.Policy{Attempts: 1000, First: time.Hour, Most: time.Hour})).
		Within(within)
	s.start(g, "1")
	if i := s.show("1"); i.Deadline.Sub(i.Started) != within {
		s.t.Errorf("%+v", i)
	}
	s.run(g)
	i := s.await("1", saga.Compensated)
	s.mustLog(i, "a", "-a")
	if i.Cause != saga.ErrDeadline.Error() || i.Finished.Before(i.Deadline) {
		s.t.Errorf("%+v", i)
	}
}

func undoFailed[Tx any](s *scene[Tx]) {
	g := s.saga(step[Tx]("a"), breaks[Tx]("b").UndoFailed())
	s.start(g, "1")
	s.run(g)
	s.mustLog(s.await("1", saga.Compensated), "a", "-b", "-a")
}

func manyRunners[Tx any](s *scene[Tx]) {
	const count = 60
	var ran atomic.Int64
	counted := saga.Step("c", func(_ context.Context, _ Tx, data *trip) error {
		if ran.Add(1)%3 == 0 {
			return errBroken
		}
		data.Log = append(data.Log, "c")
		return nil
	}, nil).Retry(retry.Policy{Attempts: 100, First: time.Millisecond, Most: time.Millisecond})
	g := s.saga(step[Tx]("a"), saga.Parallel(step[Tx]("b"), counted), step[Tx]("d"))
	var ids []string
	for n := range count {
		ids = append(ids, string(rune('a'+n/10))+string(rune('0'+n%10)))
	}
	s.start(g, ids...)
	for range 3 {
		s.run(g)
	}
	for _, id := range ids {
		i := s.await(id, saga.Completed)
		log := read(s.t, i).Log
		if len(log) != 4 || log[0] != "a" || log[3] != "d" || log[1] == log[2] {
			s.t.Errorf("%s: %q", id, log)
		}
	}
}
