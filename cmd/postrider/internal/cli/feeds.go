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

// servedFeed is one feed that this process carries, from a database to a publisher.
type servedFeed struct {
	database string // its name, for operators
	db       *database
	pool     *servedPool
	pub      postrider.Publisher // closed with the destinations
	router   *route.Router       // pub, if that is one
	only     route.Match         // of a table; routers of the log have it
	cfg      relay.Config
	to       []*openDestination // guarded by service.mu
	relay    *relay.Relay       // once it is served
}

// openDestination is a publisher, what is known of its answers, and the watch that asks what they are worth.
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

// of is the destination as one of its feeds publishes to it.
func (d *openDestination) of(feed string) postrider.Publisher {
	if d.tracer == nil {
		return listened{d}
	}
	return broker.ObservePublisher(feed, listened{d}, d.tracer)
}

// inspect asks the destination what its confirmations are worth, until ctx ends. Messages that it takes say more about whether it answers.
func (d *openDestination) inspect(ctx context.Context) {
	d.watch.Run(ctx, func(err error) {
		if err == nil || !d.answers.ever() {
			d.answers.note(err)
		}
	})
}

// openDestination opens a publisher. That of the standard output writes to where this program's output goes.
func (a *app) openDestination(d config.Destination, log *slog.Logger) (postrider.Publisher, error) {
	driver, err := d.Driver()
	if err != nil {
		return nil, err
	}
	pub, err := d.Open(log)
	if err == nil && driver.Name == "stdout" {
		if a.lines == nil { // one for all, so that lines do not mix
			a.lines = stdout.New(a.out)
		}
		return a.lines, pub.Close()
	}
	return pub, err
}

// openFeeds opens what the chosen feeds of a file need.
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
			continue // the rest is opened only to find its mistakes
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

// openTraced opens a destination for relays.
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

// openTable returns what a table leads to. Destinations are opened once, however many feeds lead there.
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

// publishers are the destinations as the router of a feed wants them.
func publishers(feed string, to []*openDestination) map[string]postrider.Publisher {
	pubs := make(map[string]postrider.Publisher, len(to))
	for _, d := range to {
		pubs[d.name] = d.of(feed)
	}
	return pubs
}

// where names a feed's destinations for the log.
func (s *service) where(feed *servedFeed) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make([]string, len(feed.to))
	for i, d := range feed.to {
		names[i] = d.name
	}
	return strings.Join(names, ",")
}
