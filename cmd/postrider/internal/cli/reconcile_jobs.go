package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/route"
	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/reconcile"
	"github.com/postrider/postrider/store/postgres"
)

// reconcilerConnections is the number of connections that the reconcilers of one database use, in
// addition to those of the feeds.
const reconcilerConnections = 2

// reconcilers are the jobs of a configuration file, ready to run. All jobs of one database run in
// one reconciler.
type reconcilers struct {
	app    *app
	file   *config.File
	log    *slog.Logger
	pools  map[string]*pgxpool.Pool // by URL
	open   []postrider.Publisher
	byName map[string]*reconcile.Reconciler[pgx.Tx] // by name of the database
	where  map[string]string                        // by name of the job, its database
}

// openReconcilers opens what the named jobs of a file need. It does not wait for databases or
// brokers.
func (a *app) openReconcilers(ctx context.Context, f *config.File, names []string, holder string, log *slog.Logger) (*reconcilers, error) {
	p := &reconcilers{
		app: a, file: f, log: log, pools: make(map[string]*pgxpool.Pool),
		byName: make(map[string]*reconcile.Reconciler[pgx.Tx]), where: make(map[string]string),
	}
	jobs := make(map[string][]reconcile.Job[pgx.Tx])
	var errs []error
	for _, name := range names {
		job, err := p.job(ctx, name, f.Reconcilers[name])
		if err != nil {
			errs = append(errs, fmt.Errorf("reconcilers.%s: %w", name, err))
			continue
		}
		database := p.where[name]
		jobs[database] = append(jobs[database], job)
	}
	for _, database := range slices.Sorted(maps.Keys(jobs)) {
		reconciler, err := p.reconciler(ctx, database, holder, jobs[database])
		p.byName[database] = reconciler
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, usageError{errors.Join(err, p.close())}
	}
	return p, nil
}

// reconciler creates the reconciler of one database.
func (p *reconcilers) reconciler(ctx context.Context, database, holder string, jobs []reconcile.Job[pgx.Tx]) (*reconcile.Reconciler[pgx.Tx], error) {
	db, err := p.database(ctx, database)
	if err != nil {
		return nil, err
	}
	return reconcile.New(db.Reconciliations(), db.Transactor(), db.Outbox(), reconcile.Config{Holder: holder, Logger: p.log}, jobs...)
}

// database opens a database of the file. Databases with the same URL share a pool.
func (p *reconcilers) database(ctx context.Context, name string) (*postgres.DB, error) {
	d := p.file.Databases[name]
	pool, ok := p.pools[d.URL]
	if !ok {
		settings, err := fileDatabase(name, d).config()
		if err != nil {
			return nil, err
		}
		settings.MaxConns = reconcilerConnections
		settings.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec // works through any pooler
		if pool, err = pgxpool.NewWithConfig(ctx, settings); err != nil {
			return nil, err
		}
		p.pools[d.URL] = pool
	}
	return postgres.Open(pool, postgres.Config{Schema: d.Schema})
}

func (p *reconcilers) job(ctx context.Context, name string, c config.Reconciler) (reconcile.Job[pgx.Tx], error) {
	job := reconcile.Job[pgx.Tx]{
		Name: name, Window: c.Window, Grace: c.Grace, Batch: c.Batch, Limit: c.Limit, Rate: c.Rate, Timeout: c.Timeout,
		Again: reconcile.Again{Max: c.Again, After: c.AgainAfter},
	}
	var err error
	if p.where[name], err = p.file.ReconcilerDatabase(c); err != nil {
		return job, err
	}
	if job.Schedule, err = c.Schedule(); err != nil {
		return job, err
	}
	switch {
	case c.Query != "":
		job.Find, err = postgres.ReconcilerQuery{
			SQL: c.Query, Type: c.Type, AggregateType: c.AggregateType, Topic: c.Topic, DedupKey: c.DedupKey, Timeout: c.Timeout,
		}.Find()
	case c.Consumer != "":
		job.Check, err = p.received(ctx, c)
	default:
		job.Check, err = p.held(ctx, c)
	}
	return job, err
}

// sent returns the log of the feed whose deliveries a job compares.
func (p *reconcilers) sent(ctx context.Context, c config.Reconciler) (*config.Plan, reconcile.Log, error) {
	name, err := p.file.ReconcilerFeed(c)
	if err != nil {
		return nil, nil, err
	}
	plan, err := p.file.Feed(name)
	if err != nil {
		return nil, nil, err
	}
	db, err := p.database(ctx, plan.DatabaseName)
	if err != nil {
		return nil, nil, err
	}
	return plan, db.SentLog(name, actor()), nil
}

func (p *reconcilers) received(ctx context.Context, c config.Reconciler) (reconcile.Check, error) {
	plan, log, err := p.sent(ctx, c)
	if err != nil {
		return nil, err
	}
	inbox := plan.DatabaseName
	if c.Inbox != "" {
		inbox = c.Inbox
	}
	db, err := p.database(ctx, inbox)
	if err != nil {
		return nil, err
	}
	only, err := route.NewTable([]route.Rule{{Match: c.Only, Destination: "inbox"}})
	if err != nil {
		return nil, err
	}
	return reconcile.Unreceived(log, db.Receipts(), c.Consumer, func(m postrider.Message) bool {
		_, err := only.Resolve(&m)
		return err == nil
	}), nil
}

func (p *reconcilers) held(ctx context.Context, c config.Reconciler) (reconcile.Check, error) {
	plan, log, err := p.sent(ctx, c)
	if err != nil {
		return nil, err
	}
	pub, err := p.app.openDestination(p.file.Destinations[c.Destination], p.log)
	if err != nil {
		return nil, err
	}
	p.open = append(p.open, pub)
	holder, ok := pub.(reconcile.Holder)
	if !ok {
		return nil, fmt.Errorf("destination %s cannot tell what it holds: NATS and Kafka can", c.Destination)
	}
	only, err := route.NewTable([]route.Rule{{Match: plan.Only, Destination: c.Destination}})
	if err != nil {
		return nil, err
	}
	return reconcile.Unheld(log, holder, func(m postrider.Message) (postrider.Message, bool) {
		if _, err := only.Resolve(&m); err != nil {
			return m, false
		}
		d, err := plan.Table.Resolve(&m)
		if err != nil || d.Drop || d.Destination != c.Destination {
			return m, false
		}
		m.Topic, m.WireID = d.Name, d.ID
		if m.Topic == "" {
			m.Topic = m.Type
		}
		return m, true
	}), nil
}

// run runs all jobs on schedule until ctx ends.
func (p *reconcilers) run(ctx context.Context) {
	var all sync.WaitGroup
	for _, reconciler := range p.byName {
		all.Go(func() {
			_ = reconciler.Run(ctx) // never fails
			for _, s := range reconciler.Stats() {
				p.log.Info("reconciler: stopped", "job", s.Job, "runs", s.Runs, "failed", s.Failed, "found", s.Found, "fixed", s.Fixed)
			}
		})
	}
	all.Wait()
}

func (p *reconcilers) close() error {
	var errs []error
	for _, pub := range p.open {
		errs = append(errs, pub.Close())
	}
	for _, pool := range p.pools {
		pool.Close()
	}
	return errors.Join(errs...)
}
