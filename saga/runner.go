package saga

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
)

// Config holds the settings of a [Runner].
type Config struct {
	// Concurrency is how many steps run at the same time in this process; each takes a connection. Defaults to 8.
	Concurrency int
	// Poll is the longest pause between two looks for what is due. Sagas that are started or signalled in this process, in
	// transactions of a postrider.Transactor, are seen at once. Defaults to 1 second.
	Poll time.Duration
	// SlowRetry is how often the compensation of a stuck saga is tried again. Defaults to 10 minutes.
	SlowRetry time.Duration
	// Keep is for how long finished sagas are kept, and their IDs refused. Negative: for ever. Defaults to 30 days.
	Keep time.Duration
	// Grace is how long steps that are under way may go on when Run is to end, before they are interrupted. Defaults to 5
	// seconds.
	Grace time.Duration
	// Logger is told about what fails. Defaults to slog.Default().
	Logger *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	var errs []error
	for _, f := range []struct {
		name  string
		value *time.Duration
		def   time.Duration
	}{{"Poll", &c.Poll, time.Second}, {"SlowRetry", &c.SlowRetry, 10 * time.Minute}, {"Grace", &c.Grace, 5 * time.Second}} {
		if *f.value < 0 {
			errs = append(errs, fmt.Errorf("setting %s is %v: negative", f.name, *f.value))
		}
		if *f.value == 0 {
			*f.value = f.def
		}
	}
	if c.Concurrency < 0 {
		errs = append(errs, fmt.Errorf("setting Concurrency is %d: negative", c.Concurrency))
	}
	if c.Concurrency == 0 {
		c.Concurrency = 8
	}
	if c.Keep == 0 {
		c.Keep = 30 * 24 * time.Hour
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c, errors.Join(errs...)
}

// Runner runs the steps that are due. It is one of any number, in this process or others: a step is locked in the database by
// the transaction that runs it, and so is free again when its process dies.
type Runner[Tx any] struct {
	store  Store[Tx]
	config Config
	log    *slog.Logger
	defs   map[string]*definition[Tx]
	known  Known

	turn  chan struct{} // whoever holds it looks for work; so an idle runner asks once a poll, whatever its concurrency
	woken chan struct{}
}

// NewRunner returns a runner for sagas of one store. Steps of these sagas that this program does not know are left alone, and
// reported: a newer program may know them.
func NewRunner[Tx any](config Config, sagas ...Definition[Tx]) (*Runner[Tx], error) {
	config, err := config.withDefaults()
	errs := []error{err}
	r := &Runner[Tx]{
		config: config, log: config.Logger, defs: make(map[string]*definition[Tx]), known: make(Known),
		turn: make(chan struct{}, 1), woken: make(chan struct{}, 1),
	}
	if len(sagas) == 0 {
		errs = append(errs, errors.New("there are no sagas"))
	}
	for _, s := range sagas {
		def := s.definition()
		switch {
		case r.defs[def.name] != nil:
			errs = append(errs, fmt.Errorf("two sagas have the name %q", def.name))
		case r.store != nil && r.store != def.store:
			errs = append(errs, fmt.Errorf("saga %q lies in another store than the one before", def.name))
		}
		r.store = def.store
		r.defs[def.name] = def
		for _, st := range def.steps {
			r.known[def.name] = append(r.known[def.name], st.name)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("saga: runner: %w", err)
	}
	return r, nil
}

// Run runs what is due until ctx ends; then it lets the steps that are under way come to their end, and returns nil. Errors of
// the database are logged, and do not end it.
func (r *Runner[Tx]) Run(ctx context.Context) error {
	for _, def := range r.defs {
		stop := def.listen(r.wake)
		defer stop()
	}
	// Steps outlive ctx by the grace.
	steps, interrupt := context.WithCancel(context.WithoutCancel(ctx))
	defer interrupt()
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(r.config.Grace, interrupt)
		context.AfterFunc(steps, func() { timer.Stop() })
	})
	defer stop()
	var group sync.WaitGroup
	for range r.config.Concurrency {
		group.Go(func() { r.serve(ctx, steps) })
	}
	group.Go(func() { r.maintain(ctx) })
	group.Wait()
	return nil
}

// serve is one worker.
func (r *Runner[Tx]) serve(ctx, steps context.Context) {
	for {
		select {
		case r.turn <- struct{}{}:
		case <-ctx.Done():
			return
		}
		passed := false
		pass := func() {
			if !passed {
				passed = true
				<-r.turn
			}
		}
		var pause time.Duration
		for ctx.Err() == nil && !passed {
			err := r.work(steps, pass)
			switch {
			case err == nil:
				r.wake() // what comes next is due, and somebody may be asleep
				continue
			case errors.Is(err, errNothing):
			case steps.Err() != nil:
			default:
				r.log.Error("saga: cannot work", "err", err)
			}
			if passed {
				if !errors.Is(err, errNothing) {
					wait(ctx, r.config.Poll) // a failure that could not be recorded must not be repeated at full speed
				}
				break
			}
			pause = min(max(2*pause, minPause), r.config.Poll)
			for r.idle(ctx, pause) {
				pause = min(2*pause, r.config.Poll)
			}
		}
		pass()
		if ctx.Err() != nil {
			return
		}
	}
}

const minPause = 5 * time.Millisecond

// idle waits until the next step is due, for pause at most, and reports whether there is still nothing to do.
func (r *Runner[Tx]) idle(ctx context.Context, pause time.Duration) bool {
	// A little more or less, lest all processes ask at the same time.
	pause += time.Duration(rand.Int64N(int64(pause)/4 + 1))
	woken := r.sleep(ctx, pause)
	if woken || ctx.Err() != nil {
		return false
	}
	next, ok, err := r.store.Due(ctx, r.known)
	if err != nil {
		if ctx.Err() == nil {
			r.log.Error("saga: cannot look for what is due", "err", err)
		}
		return ctx.Err() == nil
	}
	if ok && next > 0 && next <= pause {
		r.sleep(ctx, next)
		return false
	}
	return !ok || next > 0
}

func (r *Runner[Tx]) wake() {
	select {
	case r.woken <- struct{}{}:
	default:
	}
}

// sleep reports whether it was woken.
func (r *Runner[Tx]) sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-r.woken:
		return true
	}
	return false
}

const maintainEvery = time.Minute

// maintain does the housekeeping, and reports steps that nobody here can run.
func (r *Runner[Tx]) maintain(ctx context.Context) {
	m, ok := r.store.(Maintainer)
	for ok && ctx.Err() == nil {
		strangers, err := m.Maintain(ctx, max(0, r.config.Keep), r.known)
		if err != nil && ctx.Err() == nil {
			r.log.Error("saga: housekeeping failed", "err", err)
		}
		for _, s := range strangers {
			r.log.Error("saga: a step is due that this program does not know; it is left to one that does",
				"saga", s.Name, "id", s.ID, "step", s.Step)
		}
		wait(ctx, maintainEvery+time.Duration(rand.Int64N(int64(maintainEvery))))
	}
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
