package saga

import (
	"encoding/json"
	"slices"
	"time"
)

// Status is where a saga stands.
type Status string

// Every saga has one of these.
const (
	Running      Status = "running"
	Waiting      Status = "waiting"      // for signals, and for nothing else
	Compensating Status = "compensating" // what was done is being undone
	Stuck        Status = "stuck"        // a compensation has failed too often; it is tried again, slowly, and on command
	Completed    Status = "completed"    // all steps are done
	Compensated  Status = "compensated"  // all that was done is undone
)

// Statuses returns all statuses.
func Statuses() []Status {
	return []Status{Running, Waiting, Compensating, Stuck, Completed, Compensated}
}

// Finished reports whether nothing will happen any more.
func (s Status) Finished() bool { return s == Completed || s == Compensated }

// forward reports whether the saga still tries to complete.
func (s Status) forward() bool { return s == Running || s == Waiting }

// State is where a step stands.
type State string

// Every step has one of these.
const (
	StepPending   State = "pending"   // not reached yet
	StepReady     State = "ready"     // to be run when it is due
	StepWaiting   State = "waiting"   // for its signal
	StepDone      State = "done"      // its action has committed
	StepFailed    State = "failed"    // its action has failed for the last time
	StepCancelled State = "cancelled" // reached, but not run any more because the saga compensates
	StepSkipped   State = "skipped"   // by an operator, the action or the compensation
	StepUndoing   State = "undoing"   // its compensation is to be run when it is due
	StepStuck     State = "stuck"     // its compensation has failed too often
	StepUndone    State = "undone"    // its compensation has committed, or it has none
)

// active is a step of a saga that goes forward and is not settled.
func (s State) active() bool { return s == StepReady || s == StepWaiting }

// Instance is one saga as its store keeps it.
type Instance struct {
	Name   string `json:"name"` // of the declaration
	ID     string `json:"id"`
	Status Status `json:"status"`
	// Version counts the changes. A store writes only over the version that was read.
	Version int64 `json:"version"`
	// Cause is why the saga was given up; empty if it was not.
	Cause string `json:"cause,omitempty"`
	// Data is the saga's own, as JSON.
	Data     json.RawMessage `json:"data,omitempty"`
	Started  time.Time       `json:"started"`
	Updated  time.Time       `json:"updated"`
	Deadline time.Time       `json:"deadline,omitzero"` // for all actions together; zero if there is none
	Finished time.Time       `json:"finished,omitzero"`
	Steps    []StepState     `json:"steps,omitempty"` // in the order of the declaration
	Signals  []Signal        `json:"signals,omitempty"`
	// Now is the time of the store's clock when the instance was read.
	Now time.Time `json:"now,omitzero"`
}

// StepState is one step of an [Instance].
type StepState struct {
	Name  string `json:"name"`
	Place int    `json:"place"` // in the declaration, from 0
	// Stage is shared by steps that run side by side. A stage begins when the one before is done.
	Stage int   `json:"stage"`
	State State `json:"state"`
	// Attempts is how often the action or, once the step is to be undone, the compensation has failed, outages of what it
	// calls not counted.
	Attempts int    `json:"attempts"`
	Error    string `json:"error,omitempty"` // of the last attempt that has failed
	// Failing is when the action or the compensation failed for the first time, counted or not; zero if it has not, or an
	// operator has had it tried again since.
	Failing time.Time `json:"failing,omitzero"`
	// Begun is when the action was about to run for the first time, and zero as long as it cannot have had an effect. Of a
	// step with effects outside of the database it is written before the action runs; of others it is part of the action's
	// own transaction. Nothing ever resets it: a step is compensated if and only if it has begun.
	Begun time.Time `json:"begun,omitzero"`
	// Order counts what has begun and what is done: what was done last is undone first. 0 means that it has not begun.
	Order int `json:"order,omitempty"`
	// Skip means that an operator wants the step left out.
	Skip    bool      `json:"skip,omitempty"`
	Due     time.Time `json:"due,omitzero"`     // zero: never by itself
	Until   time.Time `json:"until,omitzero"`   // how long it waits for its signal; zero: no limit of its own
	Reached time.Time `json:"reached,omitzero"` // when the saga came to it
	Ended   time.Time `json:"ended,omitzero"`   // when its action was done or has failed for the last time
	Undone  time.Time `json:"undone,omitzero"`
}

// Signal is a message to a step that waits.
type Signal struct {
	Name    string          `json:"name"` // of the step
	Payload json.RawMessage `json:"payload,omitempty"`
	At      time.Time       `json:"at"`
	// Late means that it came when nobody waited for it any more. It was ignored.
	Late bool `json:"late,omitempty"`
	// Repeats is how many came after the first one. They were ignored.
	Repeats int `json:"repeats,omitempty"`
}

// Clone returns a copy that shares nothing with the instance.
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

// heard returns the signal that the step can act on, or nil.
func (i *Instance) heard(name string) *Signal {
	if s := i.signal(name); s != nil && !s.Late {
		return s
	}
	return nil
}

// Move takes the times of an instance that is to be created from its own Now to that of a store's clock. It is for those
// who implement a [Store].
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
