package saga

import (
	"strings"
	"time"

	"github.com/postrider/postrider/retry"
)

// The functions below change a locked instance and record in a Change what to write. All times are
// times of the store's clock, i.Now.

// begin records that the action of a step may have an effect from now on. Nothing else sets Begun,
// and nothing resets it: if the saga is given up, the step is compensated, whatever else happened
// to it.
func (i *Instance) begin(s *StepState, c *Change) {
	if !s.Begun.IsZero() {
		return
	}
	c.step(s.Name)
	s.Begun, s.Order = i.Now, i.lastOrder()+1
}

// finish records that the action or compensation of a step succeeded.
func (d *definition[Tx]) finish(i *Instance, s *StepState, c *Change) {
	c.step(s.Name)
	s.Due = time.Time{}
	switch s.State {
	case StepReady, StepWaiting:
		i.begin(s, c)
		s.State, s.Ended = StepDone, i.Now
		if last := i.lastOrder(); s.Order < last { // another step has begun or ended in the meantime
			s.Order = last + 1
		}
	case StepUndoing, StepStuck:
		s.State, s.Undone = StepUndone, i.Now
	default: // no other state runs anything
	}
	d.proceed(i, c)
}

// fail records a failed attempt and decides what happens next. random is in [0, 1).
func (d *definition[Tx]) fail(i *Instance, s *StepState, st *step[Tx], err error, slow time.Duration, random float64, c *Change) {
	c.step(s.Name)
	policy := st.retry
	if !s.State.active() {
		policy = st.undoRetry
	}
	if s.Failing.IsZero() {
		s.Failing = i.Now
	}
	failing := i.Now.Sub(s.Failing)
	next := policy.Decide(retry.Failure{Err: err, Attempts: s.Attempts, Age: failing, Waited: failing}, random)
	s.Attempts, s.Error = next.Attempts, clean(err.Error())
	switch {
	case s.State == StepUndoing && !next.GiveUp:
		s.Due = i.Now.Add(next.Pause)
	case s.State == StepUndoing || s.State == StepStuck:
		s.State, i.Status = StepStuck, Stuck
		s.Due = i.Now.Add(slow)
	case !i.Status.forward():
		d.cancel(i, s, c)
	case !next.GiveUp:
		s.State = StepReady
		s.Due = sooner(i.Now.Add(next.Pause), i.Deadline)
		d.refresh(i)
	default:
		d.giveUp(i, s, s.Name+": "+s.Error, c)
	}
}

// giveUp fails a step for good, because it failed too often or was not in time, and starts the
// compensation.
func (d *definition[Tx]) giveUp(i *Instance, s *StepState, cause string, c *Change) {
	c.step(s.Name)
	s.State, s.Due, s.Ended = StepFailed, time.Time{}, i.Now
	if i.Status.forward() {
		i.Status, i.Cause = Compensating, cause
	}
	d.proceed(i, c)
}

// cancel ends a step that was reached and will not run any more.
func (d *definition[Tx]) cancel(i *Instance, s *StepState, c *Change) {
	c.step(s.Name)
	s.State, s.Due, s.Ended = StepCancelled, time.Time{}, i.Now
	if !s.Begun.IsZero() {
		s.State = StepFailed
	}
	d.proceed(i, c)
}

// skip ends a step that an operator skipped.
func (d *definition[Tx]) skip(i *Instance, s *StepState, c *Change) {
	c.step(s.Name)
	s.State, s.Due, s.Skip = StepSkipped, time.Time{}, false
	if i.Status.forward() {
		s.Ended = i.Now
	} else {
		s.Undone = i.Now
	}
	d.proceed(i, c)
}

// proceed makes the next steps due.
func (d *definition[Tx]) proceed(i *Instance, c *Change) {
	if i.Status.forward() {
		d.forward(i, c)
	}
	if !i.Status.forward() && !i.Status.Finished() {
		d.backward(i, c)
	}
}

func (d *definition[Tx]) forward(i *Instance, c *Change) {
	stage, left := 0, false
	for _, s := range i.Steps {
		if s.State.active() {
			d.refresh(i)
			return
		}
		if s.State == StepPending && !left { // steps are in the order of their stages
			stage, left = s.Stage, true
		}
	}
	switch {
	case !left:
		i.Status, i.Finished = Completed, i.Now
		return
	case !i.Deadline.IsZero() && !i.Now.Before(i.Deadline):
		i.Status, i.Cause = Compensating, ErrDeadline.Error()
		return
	}
	for n := range i.Steps {
		s := &i.Steps[n]
		if s.State != StepPending || s.Stage != stage {
			continue
		}
		c.step(s.Name)
		s.Reached = i.Now
		s.State, s.Due = StepReady, i.Now
		if st := d.step(s.Name); st != nil && st.waits && i.heard(s.Name) == nil {
			s.State, s.Due = StepWaiting, i.Deadline
			if st.within > 0 {
				s.Until = i.Now.Add(st.within)
				s.Due = sooner(s.Until, i.Deadline)
			}
		}
	}
	d.refresh(i)
}

// refresh sets the status to Waiting if every active step waits for a signal, and to Running
// otherwise.
func (d *definition[Tx]) refresh(i *Instance) {
	i.Status = Waiting
	for _, s := range i.Steps {
		if s.State == StepReady || s.State == StepWaiting && i.heard(s.Name) != nil {
			i.Status = Running
		}
	}
}

func (d *definition[Tx]) backward(i *Instance, c *Change) {
	i.Status = Compensating
	if c.Wake = i.wakeActive(); len(c.Wake) > 0 {
		return
	}
	for {
		var last *StepState
		for n := range i.Steps {
			s := &i.Steps[n]
			switch s.State {
			case StepUndoing, StepStuck:
				return
			case StepDone, StepFailed:
				if !s.Begun.IsZero() && (last == nil || s.Order > last.Order) {
					last = s
				}
			default: // nothing to undo
			}
		}
		if last == nil {
			i.Status, i.Finished = Compensated, i.Now
			return
		}
		c.step(last.Name)
		last.Attempts, last.Failing, last.Due = 0, time.Time{}, i.Now
		last.State = StepUndoing
		// A step that this program does not know may have a compensation: leave it to a program
		// that knows it.
		if st := d.step(last.Name); st != nil && !st.hasUndo {
			last.State, last.Due, last.Undone = StepUndone, time.Time{}, i.Now
			continue
		}
		return
	}
}

// wakeActive makes all active steps due, so that they end, and returns their names.
func (i *Instance) wakeActive() []string {
	var names []string
	for n := range i.Steps {
		if s := &i.Steps[n]; s.State.active() {
			s.Due = i.Now
			names = append(names, s.Name)
		}
	}
	return names
}

// receive records a signal.
func (i *Instance) receive(name string, payload []byte) (Receipt, Change) {
	c := Change{Signal: name}
	s := i.Step(name)
	if had := i.signal(name); had != nil {
		had.Repeats++
		if had.Late {
			return Late, c
		}
		return Repeated, c
	}
	signal := Signal{Name: name, Payload: payload, At: i.Now}
	signal.Late = !i.Status.forward() || s == nil || s.State != StepPending && !s.State.active()
	i.Signals = append(i.Signals, signal)
	if signal.Late {
		return Late, c
	}
	if s.State == StepWaiting {
		s.Due = i.Now
		i.Status = Running
		c.Wake = []string{name}
	}
	return Accepted, c
}

func (i *Instance) lastOrder() int {
	last := 0
	for _, s := range i.Steps {
		last = max(last, s.Order)
	}
	return last
}

// sooner returns the earlier of two times. A zero time means never.
func sooner(a, b time.Time) time.Time {
	if b.IsZero() || !a.IsZero() && a.Before(b) {
		return a
	}
	return b
}

const maxError = 4000

// clean makes the text of an error valid for every store.
func clean(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	if len(text) > maxError {
		text = strings.ToValidUTF8(text[:maxError], "") + "…"
	}
	return text
}
