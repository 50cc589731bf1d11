package saga

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/phrase"
	"github.com/postrider/postrider/retry"
)

// Saga is a declaration, bound to the store that keeps its instances. It is safe for concurrent
// use.
type Saga[Tx, Data any] struct{ def *definition[Tx] }

// Definition is a [Saga] of any data, for [NewRunner].
type Definition[Tx any] interface{ definition() *definition[Tx] }

func (s *Saga[Tx, Data]) definition() *definition[Tx] { return s.def }

// definition is a saga without the type of its data.
type definition[Tx any] struct {
	store  Store[Tx]
	name   string
	within time.Duration
	steps  []*step[Tx]

	mu     sync.Mutex
	wakers map[*func()]bool // wake functions of the runners in this process
}

// step is a declared step without the type of the data.
type step[Tx any] struct {
	name       string
	stage      int
	waits      bool
	within     time.Duration
	timeout    time.Duration
	retry      retry.Policy
	undoRetry  retry.Policy
	undoFailed bool
	hasUndo    bool
	// run runs the action or the compensation, and returns its change of the data.
	run func(ctx context.Context, tx Tx, data, signal []byte, undo bool) (edit, error)
}

// New declares a saga. Running instances continue with the steps that they were started with, which
// are found by name: the meaning of a step must not change while there are any. Data must be
// encodable as JSON. New reports all errors at once.
func New[Tx, Data any](store Store[Tx], name string, steps ...Steps[Tx, Data]) (*Saga[Tx, Data], error) {
	def := &definition[Tx]{store: store, name: name, wakers: make(map[*func()]bool)}
	var errs []error
	if err := checkName("saga", name); err != nil {
		errs = append(errs, err)
	}
	if store == nil {
		errs = append(errs, errors.New("there is no store"))
	}
	if len(steps) == 0 {
		errs = append(errs, errors.New("there are no steps"))
	}
	seen := make(map[string]bool)
	for stage, s := range steps {
		for _, d := range s.all {
			if err := d.check(); err != nil {
				errs = append(errs, err)
			}
			if seen[d.name] && d.name != "" {
				errs = append(errs, fmt.Errorf("two steps have the name %q", d.name))
			}
			seen[d.name] = true
			def.steps = append(def.steps, erase(d, stage))
		}
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("saga: %q: %w", name, errors.Join(errs...))
	}
	return &Saga[Tx, Data]{def}, nil
}

func erase[Tx, Data any](d declared[Tx, Data], stage int) *step[Tx] {
	e := &step[Tx]{
		name: d.name, stage: stage, waits: d.waits, within: d.within, timeout: d.timeout, retry: d.retry.Or(defaultRetry),
		undoRetry: d.undoRetry.Or(defaultRetry), undoFailed: d.undoFailed, hasUndo: d.undo != nil,
	}
	if e.timeout == 0 {
		e.timeout = defaultTimeout
	}
	e.run = func(ctx context.Context, tx Tx, stored, signal []byte, undo bool) (edit, error) {
		var data Data
		if err := json.Unmarshal(stored, &data); err != nil {
			return edit{}, fmt.Errorf("saga: data: %w", phrase.Undecodable(err))
		}
		// Encode the data as this program sees it. Another version may know more fields, which the
		// comparison with this encoding must keep.
		before, err := json.Marshal(data)
		if err != nil {
			return edit{}, fmt.Errorf("saga: data: %w", err)
		}
		if err := safely(func() error {
			if undo {
				return d.undo(ctx, tx, &data)
			}
			return d.act(ctx, tx, &data, signal)
		}); err != nil {
			return edit{}, err
		}
		after, err := json.Marshal(data)
		if err != nil {
			return edit{}, fmt.Errorf("saga: data: %w", err)
		}
		return edit{stored, before, after}, nil
	}
	return e
}

// Within sets the time limit of an instance, from its start to the end of its last step. An
// instance that takes longer is compensated. Call Within before the first Start; it returns s.
// Defaults to no limit.
func (s *Saga[Tx, Data]) Within(d time.Duration) *Saga[Tx, Data] {
	s.def.within = max(0, d)
	return s
}

// Start creates an instance in the caller's transaction: it exists if and only if tx commits. If
// there is one with that ID already, Start returns [ErrExists] and tx remains usable.
func (s *Saga[Tx, Data]) Start(ctx context.Context, tx Tx, id string, data Data) error {
	if err := checkName("ID", id); err != nil {
		return fmt.Errorf("saga: %w", err)
	}
	encoded, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("saga: data: %w", err)
	}
	now := time.Now()
	i := &Instance{Name: s.def.name, ID: id, Status: Running, Data: encoded, Started: now, Updated: now, Now: now}
	if s.def.within > 0 {
		i.Deadline = now.Add(s.def.within)
	}
	for n, st := range s.def.steps {
		i.Steps = append(i.Steps, StepState{Name: st.name, Place: n, Stage: st.stage, State: StepPending})
	}
	s.def.proceed(i, &Change{})
	if err := s.def.store.Create(ctx, tx, i); err != nil {
		return fmt.Errorf("saga: start %s/%s: %w", s.def.name, id, err)
	}
	postrider.AfterCommit(ctx, s.def.wake)
	return nil
}

// Receipt is the result of [Saga.Signal].
type Receipt string

const (
	// Accepted means that the step will act on the signal, now or when the saga reaches it.
	Accepted Receipt = "accepted"
	// Repeated means that the step has a signal already. This one is counted and ignored.
	Repeated Receipt = "repeated"
	// Late means that the step does not wait for a signal any more. The signal is recorded and
	// ignored.
	Late Receipt = "late"
)

// Signal delivers a signal to a step that waits, in any transaction, such as that of an inbox
// handler. It is delivered if and only if tx commits. Only the first signal of a step takes effect.
// The saga is locked until tx ends, so Signal should be the last call in a transaction. It returns
// [ErrNotFound] if there is no such instance.
func (s *Saga[Tx, Data]) Signal(ctx context.Context, tx Tx, id, step string, payload any) (Receipt, error) {
	if st := s.def.step(step); st == nil || !st.waits {
		return "", fmt.Errorf("saga: %s has no step %q that waits", s.def.name, step)
	}
	encoded, err := json.Marshal(payload)
	if err != nil {
		return "", fmt.Errorf("saga: signal %s: %w", step, err)
	}
	i, err := s.def.store.Lock(ctx, tx, s.def.name, id)
	if err != nil {
		return "", fmt.Errorf("saga: signal %s to %s/%s: %w", step, s.def.name, id, err)
	}
	receipt, change := i.receive(step, encoded)
	if err := s.def.store.Save(ctx, tx, i, change); err != nil {
		return "", fmt.Errorf("saga: signal %s to %s/%s: %w", step, s.def.name, id, err)
	}
	postrider.AfterCommit(ctx, s.def.wake)
	return receipt, nil
}

func (d *definition[Tx]) step(name string) *step[Tx] {
	for _, s := range d.steps {
		if s.name == name {
			return s
		}
	}
	return nil
}

// wake wakes the runners of this process because a step may be due.
func (d *definition[Tx]) wake() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for wake := range d.wakers {
		(*wake)()
	}
}

func (d *definition[Tx]) listen(wake func()) (stop func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := &wake
	d.wakers[key] = true
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.wakers, key)
	}
}

// checkName returns an error for a name that a store cannot keep or an operator cannot type.
func checkName(what, name string) error {
	switch {
	case name == "":
		return fmt.Errorf("the %s has no name", what)
	case len(name) > maxName:
		return fmt.Errorf("%s %.20q… has more than %d bytes", what, name, maxName)
	case !utf8.ValidString(name), strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return fmt.Errorf("%s %q: want printable UTF-8", what, name)
	}
	return nil
}
