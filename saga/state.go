package saga

import (
	"encoding/json"
	"slices"
	"time"
)

// Status is the status of a saga.
type Status string

// The statuses of a saga.
const (
	Running      Status = "running"
	Waiting      Status = "waiting"      // only waits for signals
	Compensating Status = "compensating" // completed steps are being undone
	Stuck        Status = "stuck"        // a compensation has used up its attempts; it is retried at a slow rate and on command
	Completed    Status = "completed"    // all steps are done
	Compensated  Status = "compensated"  // all completed steps are undone
)

// Statuses returns all statuses.
func Statuses() []Status {
	return []Status{Running, Waiting, Compensating, Stuck, Completed, Compensated}
}

// Finished reports whether the status is final.
func (s Status) Finished() bool { return s == Completed || s == Compensated }

// forward reports whether the saga still tries to complete.
func (s Status) forward() bool { return s == Running || s == Waiting }

// State is the state of a step.
type State string

// The states of a step.
const (
	StepPending   State = "pending"   // the saga has not reached it yet
	StepReady     State = "ready"     // its action runs when it is due
	StepWaiting   State = "waiting"   // waits for its signal
	StepDone      State = "done"      // its action committed
	StepFailed    State = "failed"    // its action failed for the last time
	StepCancelled State = "cancelled" // it was reached, but the saga compensates and does not run it any more
	StepSkipped   State = "skipped"   // an operator skipped the action or the compensation
	StepUndoing   State = "undoing"   // its compensation runs when it is due
	StepStuck     State = "stuck"     // its compensation has used up its attempts
	StepUndone    State = "undone"    // its compensation committed, or it has none
)

// active reports whether the step was reached in the forward direction and has not ended.
func (s State) active() bool { return s == StepReady || s == StepWaiting }

// Instance is a saga as stored.
type Instance struct {
	Name   string `json:"name"` // of the declaration
	ID     string `json:"id"`
	Status Status `json:"status"`
	// Version counts the changes. A store only overwrites the version that was read.
	Version int64 `json:"version"`
	// Cause is why the saga was given up; empty if it was not.
	Cause string `json:"cause,omitempty"`
	// Data is the application's data, as JSON.
	Data     json.RawMessage `json:"data,omitempty"`
	Started  time.Time       `json:"started"`
	Updated  time.Time       `json:"updated"`
	Deadline time.Time       `json:"deadline,omitzero"` // time limit of all actions; zero if there is none
	Finished time.Time       `json:"finished,omitzero"`
	Steps    []StepState     `json:"steps,omitempty"` // in the order of the declaration
	Signals  []Signal        `json:"signals,omitempty"`
	// Now is the time on the store's clock when the instance was read.
	Now time.Time `json:"now,omitzero"`
}

// StepState is one step of an [Instance].
type StepState struct {
	Name  string `json:"name"`
	Place int    `json:"place"` // index in the declaration
	// Stage is shared by the steps of a [Parallel]. A stage begins when the previous one is done.
	Stage int   `json:"stage"`
	State State `json:"state"`
	// Attempts counts the failures of the action or, once the step is being undone, of the
	// compensation. Outages of a system that they call do not count.
	Attempts int    `json:"attempts"`
	Error    string `json:"error,omitempty"` // of the last failed attempt
	// Failing is when the action or the compensation first failed, counted or not. It is zero if it
	// has not failed, or if an operator has retried it since.
	Failing time.Time `json:"failing,omitzero"`
	// Begun is set when the action is about to run for the first time. While it is zero, the action
	// cannot have had an effect. A step with [Steps.UndoFailed] sets it in a transaction before the
	// action runs, any other step in the action's own transaction. Nothing resets it: a step is
	// compensated if and only if it has begun.
	Begun time.Time `json:"begun,omitzero"`
	// Order numbers the steps in the order in which they began or completed; the highest is undone
	// first. 0 means that the step has not begun.
	Order int `json:"order,omitempty"`
	// Skip means that an operator skipped the step.
	Skip    bool      `json:"skip,omitempty"`
	Due     time.Time `json:"due,omitzero"`     // zero: never becomes due by itself
	Until   time.Time `json:"until,omitzero"`   // time limit of its wait for a signal; zero if it has none of its own
	Reached time.Time `json:"reached,omitzero"` // when the saga reached it
	Ended   time.Time `json:"ended,omitzero"`   // when its action committed or failed for the last time
	Undone  time.Time `json:"undone,omitzero"`
}

// Signal is a signal to a step that waits.
type Signal struct {
	Name    string          `json:"name"` // name of the step
	Payload json.RawMessage `json:"payload,omitempty"`
	At      time.Time       `json:"at"`
	// Late means that the step did not wait for the signal any more. It was ignored.
	Late bool `json:"late,omitempty"`
	// Repeats counts the signals after the first one. They were ignored.
	Repeats int `json:"repeats,omitempty"`
}

// Clone returns a deep copy of the instance.
func (i *Instance) Clone() *Instance {
	c := *i
	c.Data = slices.Clone(i.Data)
	c.Steps = slices.Clone(i.Steps)
	c.Signals = slices.Clone(i.Signals)
	for n := range c.Signals {
		c.Signals[n].Payload = slices.Clone(c.Signals[n].Payload)
	}
	return &c
}

// Step returns the step of that name, or nil.
func (i *Instance) Step(name string) *StepState {
	for n := range i.Steps {
		if i.Steps[n].Name == name {
			return &i.Steps[n]
		}
	}
	return nil
}

func (i *Instance) signal(name string) *Signal {
	for n := range i.Signals {
		if i.Signals[n].Name == name {
			return &i.Signals[n]
		}
	}
	return nil
}

// heard returns the signal that a step can act on, or nil.
func (i *Instance) heard(name string) *Signal {
	if s := i.signal(name); s != nil && !s.Late {
		return s
	}
	return nil
}

// Move converts the times of a new instance from the clock of its Now to a store's clock. It is for
// implementations of [Store].
func (i *Instance) Move(now time.Time) {
	by := now.Sub(i.Now)
	move := func(t *time.Time) {
		if !t.IsZero() {
			*t = t.Add(by)
		}
	}
	for _, t := range []*time.Time{&i.Started, &i.Updated, &i.Deadline, &i.Now} {
		move(t)
	}
	for n := range i.Steps {
		s := &i.Steps[n]
		for _, t := range []*time.Time{&s.Due, &s.Until, &s.Reached} {
			move(t)
		}
	}
}
