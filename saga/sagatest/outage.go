package sagatest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/saga"
)

// down returns an action that fails the given number of times and then succeeds.
func down[Tx any](times int64, err error, word string) action[Tx] {
	var calls atomic.Int64
	return func(ctx context.Context, tx Tx, data *trip) error {
		if calls.Add(1) <= times {
			return err
		}
		return logs[Tx](word)(ctx, tx, data)
	}
}

// outage checks that attempts that fail as unavailable do not count, in actions and compensations.
func outage[Tx any](s *scene[Tx]) {
	gone := postrider.Unavailable(errBroken)
	twice := retry.Policy{First: time.Millisecond, Most: 5 * time.Millisecond, Attempts: 2}
	g := s.saga(
		saga.Step("a", down[Tx](6, gone, "a"), down[Tx](6, gone, "-a")).Retry(twice).RetryUndo(twice),
		hears[Tx]("ok"), breaks[Tx]("c"))
	s.start(g, "1")
	s.run(g)
	i := s.await("1", saga.Waiting)
	if a := i.Step("a"); a.Attempts != 0 || a.Error != errBroken.Error() || a.Failing.IsZero() {
		s.t.Errorf("%+v", a)
	}
	s.signal(g, "1", "ok", 1)
	i = s.await("1", saga.Compensated)
	s.mustLog(i, "a", "ok", "-ok", "-a")
	if a := i.Step("a"); a.Attempts != 0 {
		s.t.Errorf("%+v", a)
	}
}

// outageForTooLong checks that a policy's maximum age applies to attempts that do not count.
func outageForTooLong[Tx any](s *scene[Tx]) {
	policy := retry.Policy{First: time.Millisecond, Most: 5 * time.Millisecond, MaxAge: 30 * time.Millisecond}
	gone := func(context.Context, Tx, *trip) error { return postrider.Unavailable(errBroken) }
	g := s.saga(step[Tx]("a"), saga.Step("b", gone, nil).Retry(policy))
	s.start(g, "1")
	s.run(g)
	i := s.await("1", saga.Compensated)
	s.mustLog(i, "a", "-a")
	if b := i.Step("b"); b.Attempts != 0 || b.Ended.Sub(b.Failing) < policy.MaxAge {
		s.t.Errorf("%+v", b)
	}
}

// retryAfter checks that an action can request a longer delay, and that an operator can retry it
// earlier, although no attempt was counted.
func retryAfter[Tx any](s *scene[Tx]) {
	g := s.saga(saga.Step("a", down[Tx](1, postrider.RetryAfter(errBroken, time.Hour), "a"), nil).Retry(quick))
	s.start(g, "1")
	s.run(g)
	i := s.until("1", func(i *saga.Instance) bool { return !i.Steps[0].Failing.IsZero() })
	if a := i.Steps[0]; a.Attempts != 0 || a.Due.Sub(a.Failing) != time.Hour {
		s.t.Errorf("%+v", a)
	}
	s.act(saga.ActRetry, "1", "", true)
	i = s.await("1", saga.Completed)
	s.mustLog(i, "a")
	if !i.Steps[0].Failing.IsZero() {
		s.t.Errorf("%+v", i.Steps[0])
	}
}
