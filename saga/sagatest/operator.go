package sagatest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/saga"
)

var ann = admin.By{Who: "ann", Why: "a test"}

func (s *scene[Tx]) act(act saga.Act, id, step string, want bool) {
	s.t.Helper()
	if done, err := s.Admin.Act(s.t.Context(), ann, act, s.name, id, step); err != nil || done != want {
		s.t.Errorf("%s: %v, %v", act, done, err)
	}
}

func stuck[Tx any](s *scene[Tx]) {
	var well atomic.Bool
	var runs atomic.Int64
	g := s.saga(step[Tx]("a"), saga.Step("b", logs[Tx]("b"), func(ctx context.Context, tx Tx, data *trip) error {
		runs.Add(1)
		if !well.Load() {
			return errBroken
		}
		return logs[Tx]("-b")(ctx, tx, data)
	}).RetryUndo(quick), breaks[Tx]("c"))
	s.start(g, "1")
	slow := config
	slow.SlowRetry = 30 * time.Millisecond
	stop := s.runWith(slow, g)
	i := s.await("1", saga.Stuck)
	s.mustBe(i, saga.StepDone, saga.StepStuck, saga.StepFailed)
	if i.Steps[1].Attempts < 3 || i.Steps[1].Error == "" || i.Steps[1].Due.IsZero() {
		s.t.Errorf("%+v", i.Steps[1])
	}
	s.until("1", func(*saga.Instance) bool { return runs.Load() > 4 }) // retried automatically, at SlowRetry
	stop()
	s.act(saga.ActCompensate, "1", "", false)
	s.act(saga.ActRetry, "1", "a", false)
	well.Store(true)
	s.act(saga.ActRetry, "1", "b", true)
	s.run(g)
	s.mustLog(s.await("1", saga.Compensated), "a", "b", "-b", "-a")
	s.act(saga.ActRetry, "1", "", false)
	if _, err := s.Admin.Act(s.t.Context(), ann, saga.ActRetry, s.name, "none", ""); !errors.Is(err, saga.ErrNotFound) {
		s.t.Errorf("got %v", err)
	}
	entries, err := s.Records.Audit(s.t.Context(), "", 0, 100)
	entries = slices.DeleteFunc(entries, func(e admin.Entry) bool { return e.Target["saga"] != s.name })
	if err != nil || len(entries) != 1 {
		s.t.Fatalf("%+v, %v", entries, err)
	}
	e := entries[0]
	if e.Who != "ann" || e.Why != "a test" || e.Action != "saga retry" || e.Count != 1 || e.Target["saga"] != s.name || e.Target["id"] != "1" ||
		e.Target["step"] != "b" || e.Before["status"] != "stuck" || e.After["status"] != "compensating" {
		s.t.Errorf("%+v", e)
	}
}

func skipCompensation[Tx any](s *scene[Tx]) {
	g := s.saga(step[Tx]("a"),
		saga.Step("b", logs[Tx]("b"), func(context.Context, Tx, *trip) error { return errBroken }).RetryUndo(quick), breaks[Tx]("c"))
	s.start(g, "1")
	s.run(g)
	s.await("1", saga.Stuck)
	s.act(saga.ActSkip, "1", "", true)
	i := s.await("1", saga.Compensated)
	s.mustLog(i, "a", "b", "-a")
	s.mustBe(i, saga.StepUndone, saga.StepSkipped, saga.StepFailed)
}

func skipWait[Tx any](s *scene[Tx]) {
	g := s.saga(step[Tx]("a"), hears[Tx]("ok"), step[Tx]("c"), breaks[Tx]("d"))
	s.start(g, "1")
	s.run(g)
	s.await("1", saga.Waiting)
	s.act(saga.ActRetry, "1", "", false)
	s.act(saga.ActSkip, "1", "", true)
	i := s.await("1", saga.Compensated)
	s.mustLog(i, "a", "c", "-c", "-a")
	s.mustBe(i, saga.StepUndone, saga.StepSkipped, saga.StepUndone, saga.StepFailed)
	if r := s.signal(g, "1", "ok", 1); r != saga.Late {
		s.t.Errorf("receipt is %q", r)
	}
}

func compensateByOperator[Tx any](s *scene[Tx]) {
	g := s.saga(step[Tx]("a"), hears[Tx]("ok"))
	s.start(g, "1")
	s.run(g)
	s.await("1", saga.Waiting)
	s.act(saga.ActCompensate, "1", "", true)
	i := s.await("1", saga.Compensated)
	s.mustLog(i, "a", "-a")
	s.mustBe(i, saga.StepUndone, saga.StepCancelled)
	if i.Cause != saga.CauseOperator {
		s.t.Errorf("cause is %q", i.Cause)
	}
	s.act(saga.ActCompensate, "1", "", false)
}

// compensateWhileRunning checks that a step that runs while the saga is given up finishes, and is
// then undone.
func compensateWhileRunning[Tx any](s *scene[Tx]) {
	began, decided := make(chan struct{}), make(chan struct{})
	g := s.saga(step[Tx]("a"), saga.Step("b", func(ctx context.Context, tx Tx, data *trip) error {
		close(began)
		<-decided
		return logs[Tx]("b")(ctx, tx, data)
	}, logs[Tx]("-b")), step[Tx]("c"))
	s.start(g, "1")
	s.run(g)
	<-began
	s.act(saga.ActSkip, "1", "b", false) // ignored, because the step is running
	s.act(saga.ActCompensate, "1", "", true)
	close(decided)
	s.mustLog(s.await("1", saga.Compensated), "a", "b", "-b", "-a")
}

func listAndCount[Tx any](s *scene[Tx]) {
	g := s.saga(step[Tx]("a"), hears[Tx]("ok"))
	for n := range 5 {
		s.start(g, fmt.Sprint(n))
	}
	s.start(g, "x", "y", "z")
	other, err := saga.New(s.Store, s.name+" other", step[Tx]("a"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.start(other, "1")
	stop := s.run(g, other)
	for _, id := range []string{"0", "1", "2", "3", "4", "x", "y", "z"} {
		s.await(id, saga.Waiting)
	}
	s.signal(g, "3", "ok", 1)
	s.await("3", saga.Completed)
	stop()
	ctx := s.t.Context()
	counts, err := s.Admin.Count(ctx, saga.Filter{Name: s.name})
	if err != nil || counts[saga.Waiting] != 7 || counts[saga.Completed] != 1 {
		s.t.Errorf("%v, %v", counts, err)
	}
	var seen []string
	var after *saga.Instance
	for {
		page, err := s.Admin.List(ctx, saga.Filter{Name: s.name, Statuses: []saga.Status{saga.Waiting}}, after, 2)
		if err != nil {
			s.t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, i := range page {
			seen = append(seen, i.ID)
			if i.Data != nil || i.Steps != nil || i.Started.IsZero() || i.Updated.IsZero() {
				s.t.Errorf("%+v", i)
			}
		}
		after = &page[len(page)-1]
	}
	if fmt.Sprint(seen[3:]) != "[4 2 1 0]" { // the three before were started in one transaction
		s.t.Errorf("%q", seen)
	}
	for _, f := range []struct {
		saga.Filter
		want int
	}{
		{saga.Filter{Name: s.name}, 8}, {saga.Filter{Name: s.name, ID: "1"}, 1}, {saga.Filter{ID: "1", Name: s.name + " other"}, 1},
		{saga.Filter{Name: "none"}, 0}, {saga.Filter{Name: s.name, Statuses: []saga.Status{saga.Completed, saga.Waiting}}, 8},
		{saga.Filter{Name: s.name, Statuses: []saga.Status{saga.Stuck}}, 0}, {saga.Filter{Name: s.name, Before: s.show("2").Started}, 2},
		{saga.Filter{Name: s.name, Before: time.Now().Add(time.Hour)}, 8},
	} {
		if page, err := s.Admin.List(ctx, f.Filter, nil, 100); err != nil || len(page) != f.want {
			s.t.Errorf("%+v: %d, %v", f.Filter, len(page), err)
		}
	}
	if page, err := s.Admin.List(ctx, saga.Filter{}, nil, 1000); err != nil || len(page) < 9 {
		s.t.Errorf("%d, %v", len(page), err)
	}
}
