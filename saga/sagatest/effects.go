package sagatest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/postrider/postrider/saga"
	"github.com/postrider/postrider/saga/internal/kill"
)

// bank is a payment provider outside of the database.
type bank struct {
	mu               sync.Mutex
	charges, refunds int // calls
}

func (b *bank) charge() (first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.charges++
	return b.charges == 1
}

func (b *bank) refund() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refunds++
}

func (b *bank) count() (charges, refunds int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.charges, b.refunds
}

// effectsSurviveEveryKill kills the process at every boundary between two statements, and between
// the provider's effect and its answer. Then the deadline passes, an operator acts, or neither. In
// the end there must be the charge or its refund.
func effectsSurviveEveryKill[Tx any](s *scene[Tx]) {
	var all sync.WaitGroup
	slots := make(chan struct{}, 8)
	for _, c := range []struct {
		within time.Duration
		acts   []saga.Act
	}{
		{0, nil},
		{0, []saga.Act{saga.ActRetry}},
		{0, []saga.Act{saga.ActCompensate}},
		{0, []saga.Act{saga.ActRetry, saga.ActCompensate}},
		{deadlineOfKilled, nil},
		{deadlineOfKilled, []saga.Act{saga.ActRetry}},
	} {
		all.Go(func() {
			at := 1
			for more := true; more && !s.t.Failed(); at++ {
				slots <- struct{}{}
				more = s.killAt(at, c.within, c.acts)
				<-slots
			}
			if at < 20 && c.within == 0 && !s.t.Failed() {
				s.t.Errorf("only %d boundaries were seen", at)
			}
		})
	}
	all.Wait()
}

const deadlineOfKilled = 100 * time.Millisecond

// killAt runs a saga in a process that dies at a boundary, and then in one that survives. The first
// answer of the provider is an error. It reports whether the first process died.
func (s *scene[Tx]) killAt(at int, within time.Duration, acts []saga.Act) (died bool) {
	own := &scene[Tx]{s.t, s.Harness, fmt.Sprintf("%s %d %v %v", s.name, at, within, acts)}
	var b bank
	declare := func(process *kill.Store[Tx]) *saga.Saga[Tx, trip] {
		charge := func(context.Context, Tx, *trip) error {
			first := b.charge()
			if err := process.Point(); err != nil || !first {
				return err
			}
			return errBroken
		}
		refund := func(context.Context, Tx, *trip) error {
			b.refund()
			return process.Point()
		}
		payment := saga.Step("payment", charge, refund).Retry(quick).RetryUndo(quick).UndoFailed()
		g, err := saga.New(process, own.name, step[Tx]("a"), payment)
		if err != nil {
			s.t.Error(err)
			return nil
		}
		return g.Within(within)
	}
	killable := &kill.Store[Tx]{Store: s.Store, At: at}
	g := declare(killable)
	if err := s.Store.Do(s.t.Context(), func(ctx context.Context, tx Tx) error { return g.Start(ctx, tx, "1", trip{}) }); err != nil {
		s.t.Error(err)
		return false
	}
	one := config
	one.Concurrency, one.Poll = 1, 5*time.Millisecond
	stop := own.runWith(one, g)
	own.ended(killable)
	stop()
	for _, act := range acts {
		if _, err := s.Admin.Act(s.t.Context(), ann, act, own.name, "1", ""); err != nil {
			s.t.Error(err)
		}
	}
	time.Sleep(within) // until the deadline has passed
	alive := &kill.Store[Tx]{Store: s.Store}
	stop = own.runWith(one, declare(alive))
	i := own.ended(alive)
	stop()
	if i == nil {
		return false
	}
	payment := i.Step("payment")
	charges, refunds := b.count()
	begun := !payment.Begun.IsZero()
	switch compensated := i.Status == saga.Compensated; {
	case charges > 0 && !begun:
		s.t.Errorf("at %d, within %v, %v: the step has run and is not known to have begun: %+v", at, within, acts, payment)
	case compensated && begun != (refunds > 0), !compensated && (charges == 0 || refunds > 0):
		s.t.Errorf("at %d, within %v, %v: saga is %s (%s), charged %d, refunded %d: %+v", at, within, acts, i.Status, i.Cause, charges, refunds, payment)
	}
	return killable.Dead()
}

// ended waits until the saga is finished or its process is dead, and returns the saga.
func (s *scene[Tx]) ended(process *kill.Store[Tx]) *saga.Instance {
	for end := time.Now().Add(timeout); ; time.Sleep(2 * time.Millisecond) {
		i, err := s.Admin.Show(s.t.Context(), s.name, "1")
		switch {
		case err != nil:
			s.t.Error(err)
			return nil
		case i.Status.Finished() || process.Dead():
			return i
		case time.Now().After(end):
			s.t.Errorf("still not finished: %+v", i)
			return nil
		}
	}
}

// neverBegunIsNotCompensated checks that a step that never ran is not compensated, however its saga
// ends: a refund without a charge would lose money.
func neverBegunIsNotCompensated[Tx any](s *scene[Tx]) {
	external := func() steps[Tx] { return hears[Tx]("ok").UndoFailed() }
	for name, steps := range map[string][]steps[Tx]{
		"the wait is over":        {step[Tx]("a"), external().Within(20 * time.Millisecond)},
		"the deadline has passed": {step[Tx]("a"), external()},
		"an operator gives up":    {step[Tx]("a"), external()},
		"a neighbour fails":       {step[Tx]("a"), saga.Parallel(external(), breaks[Tx]("b"))},
		"the one before fails":    {step[Tx]("a"), breaks[Tx]("b"), external()},
	} {
		own := &scene[Tx]{s.t, s.Harness, s.name + " " + name}
		g := own.saga(steps...)
		if name == "the deadline has passed" {
			g.Within(100 * time.Millisecond)
		}
		own.start(g, "1")
		stop := own.run(g)
		if name == "an operator gives up" {
			own.await("1", saga.Waiting)
			own.act(saga.ActCompensate, "1", "", true)
		}
		i := own.await("1", saga.Compensated)
		stop()
		if log := read(s.t, i).Log; slices.Contains(log, "ok") || slices.Contains(log, "-ok") {
			s.t.Errorf("%s: %q", name, log)
		}
		if st := i.Step("ok"); !st.Begun.IsZero() || st.Order != 0 {
			s.t.Errorf("%s: %+v", name, st)
		}
	}
}
