package saga

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
)

// errNothing means that no step is due that nobody else holds.
var errNothing = errors.New("saga: nothing is due")

// errAgain means that a step has changed what another has changed meanwhile.
var errAgain = errors.New("saga: another step has changed the same data meanwhile")

// maxAgain is how often a step runs again at once for the sake of others before that counts as a failed attempt.
const maxAgain = 20

// job is a step that was taken: what was known when it began.
type job[Tx any] struct {
	def  *definition[Tx]
	st   *step[Tx]
	seen *Instance
	was  StepState

	after *Instance // when a failure was recorded
}

// work takes one step and runs it. It calls taken when it has one, before that runs. It returns errNothing if there is none,
// and an error if none could be taken; what goes wrong in a step is not its error.
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
			// While the step is still locked: nobody else may try it again before that is known.
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
		failed = ended // the commit
	}
	if ctx.Err() != nil {
		// It was interrupted, which is nobody's fault. It is due as before.
		return ctx.Err()
	}
	if err := r.note(ctx, j, failed); err != nil {
		return fmt.Errorf("saga: %s/%s: step %s has failed (%w), and that could not be recorded: %w",
			j.seen.Name, j.seen.ID, j.was.Name, failed, err)
	}
	return nil
}

// run does what there is to do for the step, and records that.
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

// lock returns the saga and its step, which nobody else can change from now on, or ErrConflict if somebody has.
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

// begin only writes that the action may have an effect from now on. The step stays due, and the action runs in a later
// transaction: if the process dies then, or the answer is lost, the database knows that there may be something to undo.
func (j *job[Tx]) begin(ctx context.Context, tx Tx) error {
	i, s, err := j.lock(ctx, tx)
	if err != nil {
		return err
	}
	if !i.Status.forward() {
		return j.settle(ctx, tx, nil) // given up meanwhile: it never ran
	}
	var c Change
	i.begin(s, &c)
	return j.def.store.Save(ctx, tx, i, c)
}

// settle records that the step has run, with what it has changed, or that it was not to be run.
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
	case s.State == StepWaiting && i.heard(s.Name) != nil: // it came just now
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

// unchanged reports whether a step is what it was when it was taken.
func (j *job[Tx]) unchanged(s *StepState) bool {
	return s.State == j.was.State && s.Attempts == j.was.Attempts && s.Order == j.was.Order
}

// note records that an attempt has failed whose transaction is gone, unless somebody has the step meanwhile, or the transaction
// has committed after all.
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

// record writes that an attempt has failed. The step is locked.
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

// tell logs what has come of a failed attempt, if it was recorded.
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
		log.Warn("saga is given up: what was done is undone")
	default:
		log.Warn("step has failed and is tried again", "next_try_in", next)
	}
}
