package saga

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
)

// errNothing means that no unlocked step is due.
var errNothing = errors.New("saga: nothing is due")

// errAgain means that parallel steps changed the same data.
var errAgain = errors.New("saga: another step has changed the same data meanwhile")

// maxAgain is how often a step may run again because of conflicts before that counts as a failed
// attempt.
const maxAgain = 20

// job is a step that was taken, with its state at that time.
type job[Tx any] struct {
	def  *definition[Tx]
	st   *step[Tx]
	seen *Instance
	was  StepState

	after *Instance // set when a failure was recorded
}

// work takes one step and runs it. It calls taken before it runs the step. It returns errNothing if
// no step is due, and another error if no step could be taken or its failure could not be recorded.
// A failure of the step itself is recorded and not returned.
func (r *Runner[Tx]) work(ctx context.Context, taken func()) error {
	var j *job[Tx]
	var ended, failed error
	for range maxAgain {
		j, failed = nil, nil
		ended = r.store.Do(ctx, func(ctx context.Context, tx Tx) error {
			j, failed = nil, nil // Do may run this again
			seen, name, err := r.store.Take(ctx, tx, r.known)
			if err != nil {
				return err
			}
			if seen == nil {
				return errNothing
			}
			def := r.defs[seen.Name]
			j = &job[Tx]{def: def, st: def.step(name), seen: seen, was: *seen.Step(name)}
			taken()
			failed = j.run(ctx, tx)
			if failed == nil || errors.Is(failed, errAgain) {
				return failed
			}
			// Record the failure while the step is still locked, so that no other worker retries it
			// before that.
			if err := r.record(ctx, tx, j, failed); err != nil {
				return failed
			}
			return nil
		})
		if !errors.Is(ended, errAgain) {
			break
		}
	}
	if ended == nil {
		if failed != nil {
			j.tell(r.log, failed)
		}
		return nil
	}
	if j == nil {
		return ended
	}
	if failed == nil {
		failed = ended // the commit failed
	}
	if ctx.Err() != nil {
		// The step was interrupted. That does not count as a failure; it remains due.
		return ctx.Err()
	}
	if err := r.note(ctx, j, failed); err != nil {
		return fmt.Errorf("saga: %s/%s: step %s has failed (%w), and that could not be recorded: %w",
			j.seen.Name, j.seen.ID, j.was.Name, failed, err)
	}
	return nil
}

// run runs the step, or ends it without running, and records the result.
func (j *job[Tx]) run(ctx context.Context, tx Tx) error {
	seen, was := j.seen, &j.was
	forward := seen.Status.forward()
	late := !seen.Deadline.IsZero() && !seen.Now.Before(seen.Deadline)
	switch {
	case was.Skip, was.State.active() && (!forward || late):
		return j.settle(ctx, tx, nil)
	case was.State == StepWaiting && seen.heard(was.Name) == nil:
		return j.settle(ctx, tx, nil)
	case !was.State.active() && !j.st.hasUndo:
		return j.settle(ctx, tx, &edit{})
	}
	if j.st.undoFailed && was.State.active() && was.Begun.IsZero() {
		return j.begin(ctx, tx)
	}
	limit := j.st.timeout
	if was.State.active() && !seen.Deadline.IsZero() {
		limit = min(limit, seen.Deadline.Sub(seen.Now))
	}
	undo := !was.State.active()
	within, cancel := context.WithTimeoutCause(withKey(ctx, seen.Name, seen.ID, was.Name, undo), limit,
		fmt.Errorf("saga: step %s has taken longer than %v", was.Name, limit))
	defer cancel()
	var payload []byte
	if s := seen.heard(was.Name); s != nil {
		payload = s.Payload
	}
	var e edit
	err := j.def.store.Try(ctx, tx, func() (err error) {
		e, err = j.st.run(within, tx, seen.Data, payload, undo)
		return err
	})
	if err != nil {
		if within.Err() != nil && ctx.Err() == nil {
			return fmt.Errorf("%w: %w", context.Cause(within), err)
		}
		return err
	}
	return j.settle(ctx, tx, &e)
}

// lock locks the saga and returns it with its step. It returns ErrConflict if another transaction
// has changed the step.
func (j *job[Tx]) lock(ctx context.Context, tx Tx) (*Instance, *StepState, error) {
	i, err := j.def.store.Lock(ctx, tx, j.seen.Name, j.seen.ID)
	if err != nil {
		return nil, nil, err
	}
	s := i.Step(j.was.Name)
	if s == nil || !j.unchanged(s) {
		return nil, nil, ErrConflict
	}
	return i, s, nil
}

// begin only records that the action may have an effect from now on. The step stays due, and the
// action runs in a later transaction. If the process then crashes, or the answer is lost, the
// database knows that there may be something to undo.
func (j *job[Tx]) begin(ctx context.Context, tx Tx) error {
	i, s, err := j.lock(ctx, tx)
	if err != nil {
		return err
	}
	if !i.Status.forward() {
		return j.settle(ctx, tx, nil) // given up meanwhile: the action never ran
	}
	var c Change
	i.begin(s, &c)
	return j.def.store.Save(ctx, tx, i, c)
}

// settle records that the step ran, with its change of the data, or that it ended without running.
func (j *job[Tx]) settle(ctx context.Context, tx Tx, ran *edit) error {
	i, s, err := j.lock(ctx, tx)
	if err != nil {
		return err
	}
	var c Change
	switch {
	case ran != nil:
		if ran.after != nil {
			data, ok := ran.apply(i.Data)
			if !ok {
				return errAgain
			}
			c.Data = !same(data, i.Data)
			i.Data = data
		}
		j.def.finish(i, s, &c)
	case s.Skip:
		j.def.skip(i, s, &c)
	case !i.Status.forward():
		j.def.cancel(i, s, &c)
	case !i.Deadline.IsZero() && !i.Now.Before(i.Deadline):
		j.def.giveUp(i, s, ErrDeadline.Error(), &c)
	case s.State == StepWaiting && i.heard(s.Name) != nil: // the signal arrived just now
		s.Due = i.Now
		c.step(s.Name)
	case s.State == StepWaiting && !s.Until.IsZero() && !i.Now.Before(s.Until):
		j.def.giveUp(i, s, ErrDeadline.Error()+": no signal "+s.Name, &c)
	default:
		s.Due = sooner(s.Until, i.Deadline)
		c.step(s.Name)
	}
	return j.def.store.Save(ctx, tx, i, c)
}

// unchanged reports whether a step is in the state in which it was taken.
func (j *job[Tx]) unchanged(s *StepState) bool {
	return s.State == j.was.State && s.Attempts == j.was.Attempts && s.Order == j.was.Order
}

// note records a failed attempt after its transaction ended. It does nothing if another worker has
// the step, or if the transaction committed after all.
func (r *Runner[Tx]) note(ctx context.Context, j *job[Tx], failed error) error {
	err := r.store.Do(ctx, func(ctx context.Context, tx Tx) error {
		held, err := r.store.Hold(ctx, tx, j.seen.Name, j.seen.ID, j.was.Name)
		if err != nil || !held {
			return err
		}
		return r.record(ctx, tx, j, failed)
	})
	if err == nil {
		j.tell(r.log, failed)
	}
	return err
}

// record records a failed attempt. The caller has locked the step.
func (r *Runner[Tx]) record(ctx context.Context, tx Tx, j *job[Tx], failed error) error {
	j.after = nil
	i, err := r.store.Lock(ctx, tx, j.seen.Name, j.seen.ID)
	if err != nil {
		return err
	}
	s := i.Step(j.was.Name)
	if s == nil || !j.unchanged(s) {
		return nil
	}
	var c Change
	j.def.fail(i, s, j.st, failed, r.config.SlowRetry, rand.Float64(), &c)
	j.after = i
	return r.store.Save(ctx, tx, i, c)
}

// tell logs the consequence of a failed attempt, if it was recorded.
func (j *job[Tx]) tell(log *slog.Logger, failed error) {
	i := j.after
	if i == nil {
		return
	}
	log = log.With("saga", i.Name, "id", i.ID, "step", j.was.Name, "error", failed)
	next := i.Step(j.was.Name).Due.Sub(i.Now)
	switch {
	case i.Status == Stuck:
		log.Error("the compensation fails: saga is stuck", "next_try_in", next, "command", "postrider saga show "+i.ID)
	case !i.Status.forward() && j.was.State.active():
		log.Warn("saga is given up: undoing its completed steps")
	default:
		log.Warn("step failed, will retry", "next_try_in", next)
	}
}
