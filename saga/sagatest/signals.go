package sagatest

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/postrider/postrider/saga"
)

// hears returns a step that waits for a number, stores it and logs name.
func hears[Tx any](name string) steps[Tx] {
	return saga.Wait(name, func(_ context.Context, _ Tx, data *trip, n int) error {
		data.Log = append(data.Log, name)
		data.A = n
		return nil
	}, logs[Tx]("-"+name)).Retry(quick).RetryUndo(quick)
}

func signal[Tx any](s *scene[Tx]) {
	g := s.saga(step[Tx]("a"), hears[Tx]("ok"), step[Tx]("c"))
	s.start(g, "1")
	s.run(g)
	i := s.await("1", saga.Waiting)
	s.mustBe(i, saga.StepDone, saga.StepWaiting, saga.StepPending)
	if r := s.signal(g, "1", "ok", 42); r != saga.Accepted {
		s.t.Errorf("receipt is %q", r)
	}
	i = s.await("1", saga.Completed)
	s.mustLog(i, "a", "ok", "c")
	if read(s.t, i).A != 42 {
		s.t.Errorf("%s", i.Data)
	}
	if r := s.signal(g, "1", "ok", 43); r != saga.Repeated {
		s.t.Errorf("receipt is %q", r)
	}
	i = s.show("1")
	if len(i.Signals) != 1 || string(i.Signals[0].Payload) != "42" || i.Signals[0].Repeats != 1 || i.Signals[0].Late {
		s.t.Errorf("%+v", i.Signals)
	}
	s.do(func(ctx context.Context, tx Tx) error {
		if _, err := g.Signal(ctx, tx, "2", "ok", 1); !errors.Is(err, saga.ErrNotFound) {
			s.t.Errorf("got %v", err)
		}
		if _, err := g.Signal(ctx, tx, "1", "a", 1); err == nil {
			s.t.Error("a step that does not wait has taken a signal")
		}
		return nil
	})
}

func earlySignal[Tx any](s *scene[Tx]) {
	g := s.saga(step[Tx]("a"), hears[Tx]("ok"), step[Tx]("c"))
	s.do(func(ctx context.Context, tx Tx) error {
		if err := g.Start(ctx, tx, "1", trip{}); err != nil {
			return err
		}
		for n, want := range []saga.Receipt{saga.Accepted, saga.Repeated} {
			if r, err := g.Signal(ctx, tx, "1", "ok", n+1); err != nil || r != want {
				s.t.Errorf("%q, %v", r, err)
			}
		}
		return nil
	})
	s.run(g)
	i := s.await("1", saga.Completed)
	s.mustLog(i, "a", "ok", "c")
	if read(s.t, i).A != 1 {
		s.t.Errorf("%s", i.Data)
	}
}

func signalRolledBack[Tx any](s *scene[Tx]) {
	g := s.saga(hears[Tx]("ok"))
	s.start(g, "1")
	s.run(g)
	s.await("1", saga.Waiting)
	err := s.Store.Do(s.t.Context(), func(ctx context.Context, tx Tx) error {
		if _, err := g.Signal(ctx, tx, "1", "ok", 1); err != nil {
			return err
		}
		return errBroken
	})
	if i := s.show("1"); !errors.Is(err, errBroken) || i.Status != saga.Waiting || len(i.Signals) != 0 {
		s.t.Errorf("%v, %+v", err, i)
	}
	if r := s.signal(g, "1", "ok", 2); r != saga.Accepted {
		s.t.Errorf("receipt is %q", r)
	}
	if i := s.await("1", saga.Completed); read(s.t, i).A != 2 {
		s.t.Errorf("%s", i.Data)
	}
}

func lateSignal[Tx any](s *scene[Tx]) {
	g := s.saga(step[Tx]("a"), breaks[Tx]("b"), hears[Tx]("ok"))
	s.start(g, "1")
	s.run(g)
	s.await("1", saga.Compensated)
	for range 2 {
		if r := s.signal(g, "1", "ok", 1); r != saga.Late {
			s.t.Errorf("receipt is %q", r)
		}
	}
	i := s.show("1")
	s.mustLog(i, "a", "-a")
	if i.Status != saga.Compensated || len(i.Signals) != 1 || !i.Signals[0].Late || i.Signals[0].Repeats != 1 {
		s.t.Errorf("%+v", i)
	}
}

func waitTimeout[Tx any](s *scene[Tx]) {
	g := s.saga(step[Tx]("a"), hears[Tx]("ok").Within(30*time.Millisecond))
	s.start(g, "1")
	s.run(g)
	i := s.await("1", saga.Compensated)
	s.mustLog(i, "a", "-a")
	s.mustBe(i, saga.StepUndone, saga.StepFailed)
	if !strings.Contains(i.Cause, "no signal ok") || i.Steps[1].Ended.Before(i.Steps[1].Until) {
		s.t.Errorf("%+v", i)
	}
	if r := s.signal(g, "1", "ok", 1); r != saga.Late {
		s.t.Errorf("receipt is %q", r)
	}
}

func badSignal[Tx any](s *scene[Tx]) {
	g := s.saga(step[Tx]("a"), hears[Tx]("ok"))
	s.start(g, "1")
	s.signal(g, "1", "ok", "not a number")
	s.run(g)
	i := s.await("1", saga.Compensated)
	s.mustLog(i, "a", "-a")
	if i.Steps[1].Attempts != 1 {
		s.t.Errorf("%+v", i.Steps[1])
	}
}
