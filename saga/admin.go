package saga

import (
	"context"
	"slices"
	"time"

	"github.com/postrider/postrider/admin"
)

// Admin is the operators' view of a [Store]. Every change is recorded with who made it and why; see
// admin.Records.
type Admin interface {
	// List returns up to limit sagas that match, the last started first, without data, steps and
	// signals. To get the next page, pass the last saga of the previous page as after.
	List(ctx context.Context, filter Filter, after *Instance, limit int) ([]Instance, error)

	// Count returns the number of matching sagas by status.
	Count(ctx context.Context, filter Filter) (map[Status]int, error)

	// Show returns a saga with all its details, or [ErrNotFound].
	Show(ctx context.Context, name, id string) (*Instance, error)

	// Act applies an act to a saga, or to one step of it, and reports whether it changed anything.
	// It does not change a step that is running.
	Act(ctx context.Context, by admin.By, act Act, name, id, step string) (bool, error)
}

// Filter selects sagas. A zero field matches all.
type Filter struct {
	Name     string    `json:"name,omitempty"`
	ID       string    `json:"id,omitempty"`
	Statuses []Status  `json:"statuses,omitempty"`
	Before   time.Time `json:"before,omitzero"` // started before then
}

// Matches reports whether the filter selects a saga.
func (f *Filter) Matches(i *Instance) bool {
	return (f.Name == "" || f.Name == i.Name) && (f.ID == "" || f.ID == i.ID) &&
		(len(f.Statuses) == 0 || slices.Contains(f.Statuses, i.Status)) && (f.Before.IsZero() || i.Started.Before(f.Before))
}

// Act is something that an operator can do to a saga.
type Act string

const (
	// ActRetry makes failing and stuck steps due now and resets their attempts.
	ActRetry Act = "retry"
	// ActCompensate gives up a running or waiting saga and undoes what was done.
	ActCompensate Act = "compensate"
	// ActSkip skips failing, waiting or stuck steps: the action or, if the saga compensates, the
	// compensation. The operator must then do by hand what it would have done.
	ActSkip Act = "skip"
)

// From returns the statuses of sagas to which the act can be applied.
func (a Act) From() []Status {
	switch a {
	case ActRetry:
		return []Status{Running, Compensating, Stuck}
	case ActSkip:
		return []Status{Running, Waiting, Compensating, Stuck}
	case ActCompensate:
		return []Status{Running, Waiting}
	}
	return nil
}

// CauseOperator is the cause of a compensation that an operator started.
const CauseOperator = "given up by an operator"

// Apply applies the act to an instance. It returns what to write and whether anything changed. It
// changes a step only if free reports that no other transaction has it locked. It is for
// implementations of [Admin].
func (a Act) Apply(i *Instance, step string, free func(step string) bool) (c Change, ok bool) {
	if !slices.Contains(a.From(), i.Status) {
		return c, false
	}
	if a == ActCompensate {
		i.Status, i.Cause = Compensating, CauseOperator
		c.Wake = i.wakeActive()
		return c, true
	}
	for n := range i.Steps {
		s := &i.Steps[n]
		failing := s.State == StepStuck || !s.Failing.IsZero() && (s.State == StepReady || s.State == StepUndoing)
		if step != "" && step != s.Name || !failing && !(a == ActSkip && s.State == StepWaiting) || !free(s.Name) {
			continue
		}
		ok = true
		s.Due = i.Now
		if a == ActSkip {
			s.Skip = true
		} else {
			s.Attempts, s.Failing = 0, time.Time{}
			if s.State == StepStuck {
				s.State, i.Status = StepUndoing, Compensating
			}
		}
		c.step(s.Name)
	}
	return c, ok
}
