package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/stdout"
	"github.com/postrider/postrider/config"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/postgres"
)

// servedFeed is one feed that this process carries, from a database to a publisher.
type servedFeed struct {
	db  *database
	pub postrider.Publisher // closed with the destinations
	cfg relay.Config
	to  string // for the log
}

// openDestination is a publisher, and the names that are known to be used there.
type openDestination struct {
	name  string
	pub   postrider.Publisher
	names []string
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

// openFeeds opens what the chosen feeds of a file need. Destinations are opened once, however many feeds lead there.
func (a *app) openFeeds(f *config.File, o relayOptions) ([]openDestination, []servedFeed, error) {
	names := o.feeds
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(f.Feeds))
	}
	var feeds []servedFeed
	var errs []error
	used := make(map[string][]string) // names by destination
	pubs := make(map[string]postrider.Publisher)
	for _, name := range names {
		plan, err := f.Feed(name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		mine := make(map[string]postrider.Publisher)
		for _, to := range plan.Table.Destinations() {
			used[to] = append(used[to], plan.Table.Names(to)...)
			if _, ok := pubs[to]; !ok {
				pub, err := a.openDestination(f.Destinations[to], o.Logger)
				if err != nil {
					errs = append(errs, fmt.Errorf("destinations.%s: %w", to, err))
				}
				pubs[to] = pub
			}
			mine[to] = pubs[to]
		}
		if len(errs) > 0 {
			continue // the rest is opened only to find its mistakes
		}
		router, err := plan.Router(mine, o.Logger)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		plan.Relay.Name, plan.Relay.Logger = o.Name, o.Logger
		db := &database{dsn: plan.Database.URL, schema: plan.Database.Schema}
		feeds = append(feeds, servedFeed{db, router, plan.Relay, strings.Join(plan.Table.Destinations(), ",")})
	}
	var destinations []openDestination
	for _, name := range slices.Sorted(maps.Keys(pubs)) {
		if pubs[name] == nil {
			continue
		}
		known := slices.Sorted(slices.Values(used[name]))
		destinations = append(destinations, openDestination{name, pubs[name], slices.Compact(known)})
	}
	if err := errors.Join(errs...); err != nil {
		return nil, nil, usageError{errors.Join(err, closeAll(destinations))}
	}
	return destinations, feeds, nil
}

// serve carries the feeds until ctx ends, or until one of them ends by itself, and closes the destinations.
func (a *app) serve(ctx context.Context, log *slog.Logger, destinations []openDestination, feeds []servedFeed) (err error) {
	var helpers sync.WaitGroup
	var pools []*pgxpool.Pool
	ctx, stop := context.WithCancel(ctx)
	defer func() {
		stop()
		helpers.Wait()
		for _, pool := range pools {
			pool.Close()
		}
		err = errors.Join(err, closeAll(destinations))
	}()

	relays := make([]*relay.Relay, len(feeds))
	for i, feed := range feeds {
		pool, err := feed.db.open(ctx)
		if err != nil {
			return err
		}
		pools = append(pools, pool)
		store, err := postgres.New(pool, feed.db.store())
		if err != nil {
			return usageError{err}
		}
		if relays[i], err = relay.New(store, feed.pub, feed.cfg); err != nil {
			return usageError{err}
		}
		if err := checkSchema(ctx, store, feed.cfg); err != nil {
			return err
		}
	}
	for _, d := range destinations {
		helpers.Go(func() { inspect(ctx, log, d) })
	}
	ended := make(chan error, len(feeds))
	for i, feed := range feeds {
		log.Info("relay: started", "feed", feed.cfg.Feed, "to", feed.to, "schema", feed.db.schema)
		helpers.Go(func() {
			err := relays[i].Run(ctx)
			logStats(log, feed.cfg.Feed, relays[i].Stats())
			ended <- err
		})
	}
	for range feeds {
		err = errors.Join(err, <-ended)
		stop() // one that ends by itself takes the others with it: half a process is harder to notice than none
	}
	return err
}

func closeAll(destinations []openDestination) error {
	var errs []error
	for _, d := range destinations {
		if err := d.pub.Close(); err != nil {
			errs = append(errs, fmt.Errorf("destination %s: %w", d.name, err))
		}
	}
	return errors.Join(errs...)
}

// checkSchema ends a relay at the start whose tables are missing: that is a mistake, and waiting would hide it. Whatever
// else is wrong the relay itself waits for.
func checkSchema(ctx context.Context, store *postgres.Store, cfg relay.Config) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	feed, err := store.Open(ctx, cfg.Feed, postrider.Member{Name: cfg.Name, Lease: cfg.Lease})
	if err == nil {
		_ = feed.Close(ctx) // has nothing to give back
	}
	if errors.Is(err, postrider.ErrSchema) {
		return err
	}
	return nil
}

func logStats(log *slog.Logger, feed string, s relay.Stats) {
	log.Info("relay: stopped", "feed", feed, "published", s.Published, "failed", s.Failed, "refused", s.Refused, "retried", s.Retried,
		"reads", s.Reads, "settles", s.Settles, "balances", s.Balances, "fenced", s.Fenced, "resets", s.Resets)
}
