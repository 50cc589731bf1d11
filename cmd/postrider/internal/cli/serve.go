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

// service is all that one process of "postrider relay" does.
type service struct {
	log        *slog.Logger
	health     config.Health
	console    config.Console
	reload     *reloader // nil without a file
	tracing    *tracing  // nil if nobody wants spans
	databases  []logDatabase
	feeds      []servedFeed
	reconciler *reconcilers // nil if there are none

	mu           sync.Mutex // for where feeds lead, which a reload changes
	destinations []*openDestination
}

// servedPool is the connections to one database. Feeds of the same database share it.
type servedPool struct {
	db            *database
	most          int
	answers       answers
	*pgxpool.Pool         // of PostgreSQL
	sql           *sql.DB // of MySQL and MariaDB
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
	cfg.MaxConns = int32(p.most)                                //nolint:gosec // checked by whoever has divided the budget
	cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec // works through any pooler
	cfg.ConnConfig.Tracer = listener{&p.answers}
	p.Pool, err = pgxpool.NewWithConfig(ctx, cfg)
	return err
}

// serve carries the feeds until ctx ends, or until one of them ends by itself, and closes everything.
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
		feed.cfg.NoInspection = true // destinations are asked, which feeds share
		if feed.relay, err = relay.New(stores[i], watched.observe(feed.cfg.Feed, feed.pub), feed.cfg); err != nil {
			return usageError{err}
		}
	}
	if err := watched.attach(s); err != nil {
		return err
	}
	h := &health{Health: s.health, metrics: watched.handler(), service: s, scrub: a.scrub, ctx: ctx, pulses: make([]pulse, len(s.feeds))}
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

// relays are those of this process, for the console.
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

// run waits for all relays. One that ends by itself takes the others with it: half a process is harder to notice than
// none.
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

// close ends the connections to databases and destinations.
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

// refused returns why a feed may not be served, with what to type next, and nil for an error that passes.
func refused(err error) error {
	var none *feeds.NoFeedError
	switch {
	case errors.As(err, &none):
		return hintedError{err, "to create it: add --feed " + phrase.ShellWord(none.Feed) + " --create, and --from with now, oldest or a time"}
	case errors.Is(err, feeds.ErrDestination):
		return hintedError{err, "if it is to go there from now on: add --force"}
	case errors.Is(err, postrider.ErrUnsupported):
		return err
	}
	return nil
}

// checkFeeds ends a process at the start that may not serve a feed: that is a mistake, and waiting would hide it. Whatever else is wrong the
// relays themselves wait for, each for its own: a database that does not answer, or tables that are not those of this program yet. They are
// all asked at the same time, so that one of them does not keep the others from starting for long.
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
				_ = feed.Close(ctx) // has nothing to give back
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
