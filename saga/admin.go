package saga

import (
	"context"
	"slices"
	"time"

	"github.com/postrider/postrider/admin"
)

// Admin is the operator's side of a [Store]. Whatever changes something is recorded, with who and why, where admin.Records
// shows it.
type Admin interface {
	// List returns up to limit sagas that match, those started last first, without data, steps and signals. Those of a page
	// that follows lie behind the last of the page before.
	List(ctx context.Context, filter Filter, after *Instance, limit int) ([]Instance, error)

	// Count returns how many match, by status.
	Count(ctx context.Context, filter Filter) (map[Status]int, error)

	// Show returns all there is to know of a saga, or [ErrNotFound].
	Show(ctx context.Context, name, id string) (*Instance, error)

	// Act does something to a saga, and returns whether there was anything to do it to. With a step it is done to that alone.
	// A step that is running at that moment is left as it is.
	Act(ctx context.Context, by admin.By, act Act, name, id, step string) (bool, error)
}

// Filter chooses sagas. What is zero matches all.
type Filter struct {
	Name     string    `json:"name,omitempty"`
	ID       string    `json:"id,omitempty"`
	Statuses []Status  `json:"statuses,omitempty"`
	Before   time.Time `json:"before,omitzero"` // started before then
}

// Matches reports whether a saga is one of those chosen.
func (f *Filter) Matches(i *Instance) bool {
	return (f.Name == "" || f.Name == i.Name) && (f.ID == "" || f.ID == i.ID) &&
		(len(f.Statuses) == 0 || slices.Contains(f.Statuses, i.Status)) && (f.Before.IsZero() || i.Started.Before(f.Before))
}

// Act is something that operators can do to a saga.
type Act string

const (
	// ActRetry has steps that have failed, and those that are stuck, tried now, with all their attempts ahead of them.
	ActRetry Act = "retry"
	// ActCompensate gives up a saga that is under way: what was done is undone.
	ActCompensate Act = "compensate"
	// ActSkip leaves out steps that fail, wait or are stuck: the action or, of a saga that compensates, the compensation. What
	// it would have done is left to the operator.
	ActSkip Act = "skip"
)

// From returns the statuses of sagas to which the act can be done.
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

// CauseOperator is the cause of a compensation that an operator wants.
const CauseOperator = "given up by an operator"

// Apply does the act to an instance, and returns what is to be written of it and whether there was anything to do. The steps
// that it changes must not be locked by others; free says so. It is for those who implement an [Admin].
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
