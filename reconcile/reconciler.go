package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/sleep"
)

// Config holds the settings of a [Reconciler].
type Config struct {
	// Holder is the name of this process for operators. Defaults to the host name and the process
	// ID.
	Holder string
	// Lease is how long a job stays claimed by a process that does not renew its claim. It must be
	// longer than every job's Timeout. Defaults to 2 minutes.
	Lease time.Duration
	// Poll is the maximum interval between checks whether a job is due. Defaults to 10 seconds.
	Poll time.Duration
	// Logger logs what was found, and failures. Defaults to [slog.Default].
	Logger *slog.Logger
}

// Reconciler runs jobs. Tx is the transaction type of the application. It is safe for concurrent
// use.
type Reconciler[Tx any] struct {
	store  Store[Tx]
	db     postrider.Transactor[Tx]
	outbox postrider.Outbox[Tx]
	cfg    Config
	jobs   []Job[Tx]
	tally  map[string]*tally
}

// New returns a reconciler. The outbox may be nil if no job has a Find. New reports all errors in
// the jobs at once.
func New[Tx any](store Store[Tx], db postrider.Transactor[Tx], outbox postrider.Outbox[Tx], cfg Config, jobs ...Job[Tx]) (*Reconciler[Tx], error) {
	fill(&cfg.Lease, 2*time.Minute)
	fill(&cfg.Poll, 10*time.Second)
	if cfg.Holder == "" {
		host, _ := os.Hostname() // if it fails, the process ID must suffice
		cfg.Holder = fmt.Sprintf("%s:%d", host, os.Getpid())
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	p := &Reconciler[Tx]{store: store, db: db, outbox: outbox, cfg: cfg, tally: make(map[string]*tally)}
	var errs []error
	if cfg.Lease < 0 || cfg.Poll < 0 {
		errs = append(errs, fmt.Errorf("reconcile: Lease is %v and Poll %v: want more than 0", cfg.Lease, cfg.Poll))
	}
	for _, j := range jobs {
		errs = append(errs, j.Validate())
		j = j.withDefaults()
		if j.Timeout >= cfg.Lease {
			errs = append(errs, fmt.Errorf("reconcile: job %s: Timeout %v and Lease %v contradict each other: the job would be taken over "+
				"while it works", j.Name, j.Timeout, cfg.Lease))
		}
		if j.Find != nil && outbox == nil {
			errs = append(errs, fmt.Errorf("reconcile: job %s has a Find, but there is no outbox", j.Name))
		}
		if p.tally[j.Name] != nil {
			errs = append(errs, fmt.Errorf("reconcile: there are two jobs %s", j.Name))
		}
		p.jobs = append(p.jobs, j)
		p.tally[j.Name] = &tally{}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return p, nil
}

// Run runs jobs when they are due, until ctx ends. Several processes may call it: one of them at a
// time runs a job. It logs and records failures and continues. It may be called again.
func (p *Reconciler[Tx]) Run(ctx context.Context) error {
	var all sync.WaitGroup
	for i := range p.jobs {
		all.Go(func() { p.watch(ctx, &p.jobs[i]) })
	}
	all.Wait()
	<-ctx.Done()
	return nil
}

// watch runs one job whenever it is due.
func (p *Reconciler[Tx]) watch(ctx context.Context, job *Job[Tx]) {
	log := p.cfg.Logger.With("job", job.Name)
	for announced, down := false, false; ctx.Err() == nil; {
		var err error
		if !announced {
			err = p.announce(ctx, job)
			announced = err == nil
		}
		if err == nil {
			_, err = p.run(ctx, job, Options{}, false)
		}
		wait := p.cfg.Poll
		var notYet *NotYetError
		switch {
		case errors.As(err, &notYet):
			wait, down = max(min(wait, notYet.Wait), time.Millisecond), false
		case err == nil:
			wait, down = 0, false
		case ctx.Err() == nil && !down:
			log.Error("reconcile: failed", "err", err)
			down = true // log an outage of the store once
		}
		sleep.For(ctx, wait)
	}
}

// announce registers a job with the store. A new job with a fixed interval is due at once.
func (p *Reconciler[Tx]) announce(ctx context.Context, job *Job[Tx]) error {
	return p.store.Announce(ctx, job.Name, job.Schedule.String(), func(now time.Time) time.Time {
		if _, ok := job.Schedule.(every); ok {
			return now
		}
		return job.Schedule.Next(now)
	})
}

// Options configure [Reconciler.RunNow].
type Options struct {
	// DryRun finds messages, but sends and counts nothing. It needs no claim, so another run does
	// not prevent it.
	DryRun bool
	// Since is how far back to look. Defaults to the job's Window.
	Since time.Duration
	// Limit is the maximum number of messages to send or, in a dry run, to show. Defaults to the
	// job's Limit.
	Limit int
	// Show is called for each message that is sent or, in a dry run, found. Defaults to none.
	Show func(postrider.Message)
}

// RunNow runs a job even if it is not due. It returns a [*NotYetError] if another process runs it.
// It does not change when the job is due next.
func (p *Reconciler[Tx]) RunNow(ctx context.Context, name string, o Options) (Run, error) {
	for i := range p.jobs {
		job := &p.jobs[i]
		if job.Name != name {
			continue
		}
		if o.Since != 0 && o.Since <= job.Grace {
			return Run{}, fmt.Errorf("reconcile: Since %v and the job's Grace %v contradict each other: nothing lies between", o.Since, job.Grace)
		}
		if o.DryRun {
			return p.dryRun(ctx, job, o)
		}
		if err := p.announce(ctx, job); err != nil {
			return Run{}, err
		}
		return p.run(ctx, job, o, true)
	}
	return Run{}, fmt.Errorf("%w: %q", ErrNoJob, name)
}

// Jobs returns the states of all jobs that any process has announced.
func (p *Reconciler[Tx]) Jobs(ctx context.Context) ([]State, error) { return p.store.Jobs(ctx) }
