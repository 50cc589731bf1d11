package cli

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin/console"
	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/internal/phrase"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/feeds"
)

// service is everything that one process of "postrider relay" runs.
type service struct {
	log        *slog.Logger
	health     config.Health
	console    config.Console
	reload     *reloader // nil without a file
	tracing    *tracing  // nil without tracing
	databases  []logDatabase
	feeds      []servedFeed
	reconciler *reconcilers // nil if there are none

	mu           sync.Mutex // guards where feeds deliver to, which a reload changes
	destinations []*openDestination
}

// servedPool holds the connections to one database, which all its feeds share.
type servedPool struct {
	db            *database
	most          int
	answers       answers
	*pgxpool.Pool         // for PostgreSQL
	sql           *sql.DB // for MySQL and MariaDB
}

func (p *servedPool) open(ctx context.Context) error {
	if p.Pool != nil || p.sql != nil {
		return nil
	}
	if p.db.isMySQL() {
		var err error
		p.sql, err = p.db.openTable(ctx, p.most)
		return err
	}
	cfg, err := p.db.pgConfig()
	if err != nil {
		return err
	}
	cfg.MaxConns = int32(p.most)                                //nolint:gosec // at most perProcess
	cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec // works through any pooler
	cfg.ConnConfig.Tracer = listener{&p.answers}
	p.Pool, err = pgxpool.NewWithConfig(ctx, cfg)
	return err
}

// serve runs the feeds until ctx ends, or until one of them ends by itself, and closes everything.
func (a *app) serve(ctx context.Context, s *service) (err error) {
	var helpers sync.WaitGroup
	ctx, stop := context.WithCancel(ctx)
	defer func() {
		stop()
		helpers.Wait()
		err = errors.Join(err, s.close())
	}()
	watched, err := newTelemetry(s)
	if err != nil {
		return err
	}
	var shown *openConsole
	if s.console.Listen != "" {
		if shown, err = a.openConsole(ctx, s.console, s.databases, s.relays, s.reconciler, s.log); err != nil {
			return err
		}
		defer shown.close()
		watched.observers = append(watched.observers, shown.Observer())
	}
	stores := make([]feeds.Store, len(s.feeds))
	for i := range s.feeds {
		feed := &s.feeds[i]
		if err := feed.pool.open(ctx); err != nil {
			return err
		}
		if stores[i], err = feed.store(); err != nil {
			return usageError{err}
		}
		feed.cfg.NoInspection = true // this process inspects destinations itself, because feeds share them
		if feed.relay, err = relay.New(stores[i], watched.observe(feed.cfg.Feed, feed.pub), feed.cfg); err != nil {
			return usageError{err}
		}
	}
	if err := watched.attach(s); err != nil {
		return err
	}
	h := &health{Health: s.health, metrics: watched.handler(), service: s, scrub: a.scrub, ctx: ctx, progress: make([]progress, len(s.feeds))}
	if s.health.Listen != "" {
		stopHealth, err := httpListener{what: "health", listen: h.Listen, write: 10 * time.Second, Handler: h.handler()}.start(ctx, s.log)
		if err != nil {
			return err
		}
		defer stopHealth()
		helpers.Go(func() { h.watch(ctx) })
	}
	if err := checkFeeds(ctx, stores, s.feeds); err != nil {
		return err
	}
	watched.run(ctx, &helpers)
	s.listen(ctx, &helpers)
	if shown != nil {
		stopConsole, err := shown.listener(s.console).start(ctx, s.log)
		if err != nil {
			return err
		}
		defer stopConsole()
		helpers.Go(func() { shown.Run(ctx) })
	}
	for _, d := range s.destinations {
		helpers.Go(func() { d.inspect(ctx) })
	}
	if s.reload != nil {
		helpers.Go(func() { a.reloadOnSignal(ctx, s) })
	}
	if s.reconciler != nil {
		helpers.Go(func() { s.reconciler.run(ctx) })
	}
	helpers.Go(func() { manager{h.live, h.summary, s.log}.tell(ctx) })
	return s.run(ctx, stop, &helpers)
}

// relays returns the relays of this process, for the console.
func (s *service) relays() []console.Relay {
	all := make([]console.Relay, len(s.feeds))
	for i := range s.feeds {
		feed := &s.feeds[i]
		all[i] = console.Relay{
			Database: feed.database, Feed: feed.cfg.Feed, Name: feed.cfg.WithDefaults().Name, To: s.where(feed), Stats: feed.relay.Stats(),
		}
	}
	return all
}

// run waits for all relays. If one ends by itself, run stops the others: a process that serves only
// some of its feeds is harder to notice than one that has exited.
func (s *service) run(ctx context.Context, stop func(), helpers *sync.WaitGroup) error {
	ended := make(chan error, len(s.feeds))
	for i := range s.feeds {
		feed := &s.feeds[i]
		s.log.Info("relay: started", "feed", feed.cfg.Feed, "to", s.where(feed), "schema", feed.db.schemaName())
		helpers.Go(func() {
			err := feed.relay.Run(ctx)
			logStats(s.log, feed.cfg.Feed, feed.relay.Stats())
			ended <- err
		})
	}
	var errs []error
	for range s.feeds {
		errs = append(errs, <-ended)
		stop()
	}
	return errors.Join(errs...)
}

// close closes the connections to databases and destinations.
func (s *service) close() error {
	var errs []error
	for i := range s.feeds {
		if pool := s.feeds[i].pool; pool.Pool != nil {
			pool.Close()
		} else if pool.sql != nil {
			errs = append(errs, pool.sql.Close())
		}
	}
	for _, d := range s.destinations {
		if err := d.pub.Close(); err != nil {
			errs = append(errs, fmt.Errorf("destination %s: %w", d.name, err))
		}
	}
	if s.reconciler != nil {
		errs = append(errs, s.reconciler.close())
	}
	return errors.Join(errs...)
}

// refused returns the error, with a suggestion, if a feed must not be served, and nil if the error
// may pass by itself.
func refused(err error) error {
	var none *feeds.NoFeedError
	switch {
	case errors.As(err, &none):
		return hintedError{err, "to create it: add --feed " + phrase.ShellWord(none.Feed) + " --create, and --from with now, oldest or a time"}
	case errors.Is(err, feeds.ErrDestination):
		return hintedError{err, "to send it there from now on: add --force"}
	case errors.Is(err, postrider.ErrUnsupported):
		return err
	}
	return nil
}

// checkFeeds returns an error at the start if a feed must not be served: that is a mistake in the
// configuration, and waiting would hide it. The relays themselves wait for everything else, such as
// an unreachable database or outdated tables. All feeds are checked in parallel, so that one slow
// database does not delay the others.
func checkFeeds(ctx context.Context, stores []feeds.Store, names []servedFeed) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	errs := make([]error, len(names))
	var asked sync.WaitGroup
	for i := range names {
		asked.Go(func() {
			cfg := names[i].cfg
			feed, err := stores[i].Open(ctx, cfg.Feed, cfg.Member())
			if err == nil {
				_ = feed.Close(ctx) // it owns no shards yet
			} else {
				errs[i] = refused(err)
			}
		})
	}
	asked.Wait()
	if at := slices.IndexFunc(errs, func(err error) bool { return err != nil }); at >= 0 {
		return errs[at]
	}
	return nil
}

func logStats(log *slog.Logger, feed string, s relay.Stats) {
	log.Info("relay: stopped", "feed", feed, "published", s.Published, "failed", s.Failed, "refused", s.Refused, "retried", s.Retried,
		"reads", s.Reads, "settles", s.Settles, "balances", s.Balances, "fenced", s.Fenced, "resets", s.Resets)
}
