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
	// Concurrency is how many steps run concurrently in this process; each takes a database
	// connection. Defaults to 8.
	Concurrency int
	// Poll is the maximum interval between queries for due steps. Sagas that are started or
	// signalled in this process, in transactions of a postrider.Transactor, are noticed at once.
	// Defaults to 1 second.
	Poll time.Duration
	// SlowRetry is the interval between retries of the compensation of a stuck saga. Defaults to 10
	// minutes.
	SlowRetry time.Duration
	// Keep is how long finished sagas are kept, during which their IDs cannot be used again. If
	// negative, they are kept forever. Defaults to 30 days.
	Keep time.Duration
	// Grace is how long running steps may continue when Run ends, before their context is
	// cancelled. Defaults to 5 seconds.
	Grace time.Duration
	// Logger logs failures. Defaults to slog.Default().
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

// Runner runs the steps that are due. Any number of runners can run, in this process and others.
// The transaction that runs a step locks it in the database, so the step is free again if the
// process crashes.
type Runner[Tx any] struct {
	store  Store[Tx]
	config Config
	log    *slog.Logger
	defs   map[string]*definition[Tx]
	known  Known

	turn  chan struct{} // semaphore of the worker that polls, so that an idle runner polls once an interval whatever its concurrency
	woken chan struct{}
}

// NewRunner returns a runner for sagas of one store. It does not run steps of these sagas that this
// program does not know, such as those of a newer version, but reports them.
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

// Run runs due steps until ctx ends. Then it waits for running steps and returns nil. It logs
// errors of the database and continues.
func (r *Runner[Tx]) Run(ctx context.Context) error {
	for _, def := range r.defs {
		stop := def.listen(r.wake)
		defer stop()
	}
	// Steps may outlive ctx by Grace.
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

// serve runs one worker.
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
		var delay time.Duration
		for ctx.Err() == nil && !passed {
			err := r.work(steps, pass)
			switch {
			case err == nil:
				r.wake() // the next step may be due, and other workers may be idle
				continue
			case errors.Is(err, errNothing):
			case steps.Err() != nil:
			default:
				r.log.Error("saga: cannot work", "err", err)
			}
			if passed {
				if !errors.Is(err, errNothing) {
					wait(ctx, r.config.Poll) // do not retry at full speed after a failure that could not be recorded
				}
				break
			}
			delay = min(max(2*delay, minDelay), r.config.Poll)
			for r.idle(ctx, delay) {
				delay = min(2*delay, r.config.Poll)
			}
		}
		pass()
		if ctx.Err() != nil {
			return
		}
	}
}

const minDelay = 5 * time.Millisecond

// idle waits until the next step is due, for at most delay, and reports whether there is still
// nothing to do.
func (r *Runner[Tx]) idle(ctx context.Context, delay time.Duration) bool {
	// Jitter, so that processes do not all poll at the same time.
	delay += time.Duration(rand.Int64N(int64(delay)/4 + 1))
	woken := r.sleep(ctx, delay)
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
	if ok && next > 0 && next <= delay {
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

// sleep waits for d and reports whether it was woken.
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

// maintain runs the housekeeping, and reports due steps that this program does not know.
func (r *Runner[Tx]) maintain(ctx context.Context) {
	m, ok := r.store.(Maintainer)
	for ok && ctx.Err() == nil {
		unknown, err := m.Maintain(ctx, max(0, r.config.Keep), r.known)
		if err != nil && ctx.Err() == nil {
			r.log.Error("saga: housekeeping failed", "err", err)
		}
		for _, s := range unknown {
			r.log.Error("saga: a step is due that this program does not know; it is left to a program that does",
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
