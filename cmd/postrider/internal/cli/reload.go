package cli

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/postrider/postrider/broker/route"
	"github.com/postrider/postrider/cmd/postrider/internal/config"
)

// reloader reloads the routes of a configuration file.
type reloader struct {
	path    string
	file    *config.File // that is in use
	signals <-chan os.Signal
}

// reloadOnSignal reloads the file at each signal, until ctx ends.
func (a *app) reloadOnSignal(ctx context.Context, s *service) {
	var inspections sync.WaitGroup
	defer inspections.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.reload.signals:
		}
		changed, err := a.reloadRoutes(s)
		var mistakes config.Mistakes
		errors.As(err, &mistakes)
		for _, m := range mistakes {
			s.log.Error("relay: the file has a mistake", "file", m.File, "line", m.Line, "path", m.Path, "mistake", a.scrub(m.Message))
		}
		if len(mistakes) > 0 {
			err = errors.New(count(len(mistakes), "mistake"))
		}
		if err != nil {
			s.log.Error("relay: reload failed; the previous routes stay in use", "file", s.reload.path, "because", a.scrub(err.Error()))
			continue
		}
		s.log.Info("relay: reloaded", "file", s.reload.path, "new routes", strings.Join(changed.feeds, ","))
		for _, d := range changed.destinations {
			inspections.Go(func() { d.inspect(ctx) })
		}
	}
}

// reloaded is the result of a reload.
type reloaded struct {
	feeds        []string
	destinations []*openDestination // new ones
}

// restartError names changes that need a restart.
type restartError struct{ parts []string }

func (e restartError) Error() string { return "a restart is needed for " + strings.Join(e.parts, ", ") }

// newRoutes is a feed with its new routes.
type newRoutes struct {
	feed  *servedFeed
	table *route.Table
	to    []*openDestination
}

// reloadRoutes applies the routes of the file: all of them, or none.
func (a *app) reloadRoutes(s *service) (done reloaded, err error) {
	// Use a separate app: loadConfig records addresses in its app, while other goroutines read
	// those of a.
	reader := &app{streams: a.streams, db: a.db}
	next, err := reader.loadConfig(s.reload.path, false)
	if err != nil {
		return done, err
	}
	routes, others := s.reload.file.Changes(next)
	if len(others) > 0 {
		return done, restartError{others}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	opened := len(s.destinations)
	defer func() {
		if err != nil { // close new destinations, which no route uses
			for _, d := range s.destinations[opened:] {
				err = errors.Join(err, d.pub.Close())
			}
			s.destinations = s.destinations[:opened]
		}
	}()
	var plans []newRoutes
	for i := range s.feeds {
		feed := &s.feeds[i]
		if !slices.Contains(routes, feed.cfg.Feed) {
			continue
		}
		plan, err := next.Feed(feed.cfg.Feed)
		if err != nil {
			return done, err
		}
		to, err := a.openTable(s, next, plan.Table)
		if err != nil {
			return done, err
		}
		plans = append(plans, newRoutes{feed, plan.Table, to})
	}
	for _, p := range plans {
		if err := p.feed.router.Replace(p.table, publishers(p.feed.cfg.Feed, p.to)); err != nil {
			return done, err // cannot happen: all destinations are open
		}
		p.feed.to = p.to
		done.feeds = append(done.feeds, p.feed.cfg.Feed)
	}
	done.destinations = slices.Clone(s.destinations[opened:])
	s.reload.file = next
	return done, nil
}
