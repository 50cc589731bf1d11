package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/route"
	"github.com/postrider/postrider/broker/stdout"
	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/internal/inspection"
	"github.com/postrider/postrider/relay"
)

// servedFeed is a feed that this process serves.
type servedFeed struct {
	database string // the database's name, for operators
	db       *database
	pool     *servedPool
	pub      postrider.Publisher // closed with the destinations
	router   *route.Router       // pub, if it is a router
	only     route.Match         // the filter of a table; for the log the router applies it
	cfg      relay.Config
	to       []*openDestination // guarded by service.mu
	relay    *relay.Relay       // nil until it is served
}

// openDestination is a publisher, with a record of its answers and the watch that inspects its
// broker.
type openDestination struct {
	name    string
	pub     postrider.Publisher
	answers *answers
	watch   *inspection.Watch
	tracer  postrider.Observer // nil without tracing
}

func newDestination(name string, pub postrider.Publisher, log *slog.Logger) *openDestination {
	return &openDestination{name, pub, &answers{}, inspection.New(pub, log.With("destination", name), nil), nil}
}

// of returns the destination as the publisher of one feed.
func (d *openDestination) of(feed string) postrider.Publisher {
	if d.tracer == nil {
		return listened{d}
	}
	return broker.ObservePublisher(feed, listened{d}, d.tracer)
}

// inspect checks, until ctx ends, what confirmations of the destination guarantee. The result
// counts as an answer only until the first one: publishing shows better whether the destination
// responds.
func (d *openDestination) inspect(ctx context.Context) {
	d.watch.Run(ctx, func(err error) {
		if err == nil || !d.answers.ever() {
			d.answers.note(err)
		}
	})
}

// openDestination opens a publisher. The driver stdout writes to this program's output.
func (a *app) openDestination(d config.Destination, log *slog.Logger) (postrider.Publisher, error) {
	driver, err := d.Driver()
	if err != nil {
		return nil, err
	}
	pub, err := d.Open(log)
	if err == nil && driver.Name == "stdout" {
		if a.lines == nil { // shared, so that lines do not mix
			a.lines = stdout.New(a.out)
		}
		return a.lines, pub.Close()
	}
	return pub, err
}

// openFeeds opens the databases and destinations of the selected feeds.
func (a *app) openFeeds(f *config.File, o relayOptions) (*service, error) {
	names := o.feeds
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(f.Feeds))
	}
	s := &service{log: o.Logger, health: f.Health, console: f.Console, tracing: o.tracing}
	pools := make(map[string]*servedPool)
	connections, err := f.Pools(names)
	errs := []error{err}
	for _, name := range names {
		plan, err := f.Feed(name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		to, err := a.openTable(s, f, plan.Table)
		if err != nil {
			errs = append(errs, err)
		}
		if errors.Join(errs...) != nil {
			continue // continue only to find further mistakes
		}
		router, err := plan.Router(publishers(name, to), o.Logger)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		plan.Relay.Name, plan.Relay.Logger = o.Name, o.Logger.With("database", plan.DatabaseName)
		db := fileDatabase(plan.DatabaseName, plan.Database)
		pool, ok := pools[db.dsn]
		if !ok {
			pool = &servedPool{db: db, most: connections[db.dsn]}
			pools[db.dsn] = pool
		}
		s.feeds = append(s.feeds, servedFeed{
			database: plan.DatabaseName, db: db, pool: pool, pub: router, router: router, only: plan.Only, cfg: plan.Relay, to: to,
		})
		cfg := &s.feeds[len(s.feeds)-1].cfg
		cfg.Memory = max(cfg.Memory/len(names), 1<<20)
		if cfg.Force = o.force; o.create {
			cfg.Create, cfg.From = true, o.origin
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, usageError{errors.Join(err, s.close())}
	}
	for i := range s.feeds {
		for _, other := range s.feeds {
			if f := &s.feeds[i]; f.db.dsn == other.db.dsn && f.db.schema == other.db.schema {
				f.cfg.Beside = append(f.cfg.Beside, other.cfg.Feed)
			}
		}
	}
	return s, nil
}

// openTraced opens a destination, with tracing if it is configured.
func (a *app) openTraced(s *service, name string, d config.Destination) (*openDestination, error) {
	tracer, err := s.tracing.of(d)
	if err != nil {
		return nil, err
	}
	pub, err := a.openDestination(d, s.log)
	if err != nil {
		return nil, err
	}
	open := newDestination(name, pub, s.log)
	open.tracer = tracer
	return open, nil
}

// openTable returns the destinations of a table. Each destination is opened once, also if several
// feeds use it.
func (a *app) openTable(s *service, f *config.File, t *route.Table) (to []*openDestination, err error) {
	var errs []error
	for _, name := range t.Destinations() {
		at := slices.IndexFunc(s.destinations, func(d *openDestination) bool { return d.name == name })
		if at < 0 {
			d, err := a.openTraced(s, name, f.Destinations[name])
			if err != nil {
				errs = append(errs, fmt.Errorf("destinations.%s: %w", name, err))
				continue
			}
			at = len(s.destinations)
			s.destinations = append(s.destinations, d)
		}
		d := s.destinations[at]
		for _, known := range t.Names(name) {
			d.watch.Sent(known)
		}
		to = append(to, d)
	}
	return to, errors.Join(errs...)
}

// publishers returns the destinations for the router of a feed, by name.
func publishers(feed string, to []*openDestination) map[string]postrider.Publisher {
	pubs := make(map[string]postrider.Publisher, len(to))
	for _, d := range to {
		pubs[d.name] = d.of(feed)
	}
	return pubs
}

// where returns the names of a feed's destinations, for logs.
func (s *service) where(feed *servedFeed) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make([]string, len(feed.to))
	for i, d := range feed.to {
		names[i] = d.name
	}
	return strings.Join(names, ",")
}
