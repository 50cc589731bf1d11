package config

import (
	"cmp"
	"fmt"
	"log/slog"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/route"
	"github.com/postrider/postrider/relay"
)

const defaultSchema = "postrider"

// Plan is a feed with all defaults filled in, ready to run.
type Plan struct {
	Name         string
	DatabaseName string
	Database     Database
	Table        *route.Table
	Only         route.Match
	Relay        relay.Config // with the feed's name, order and the defaults; the caller sets Name and Logger
}

// Feed returns the plan of the named feed.
func (f *File) Feed(name string) (*Plan, error) {
	feed, ok := f.Feeds[name]
	if !ok {
		return nil, fmt.Errorf("config: there is no feed %q: there are %s", name, list(f.Feeds))
	}
	database, err := choose("database", feed.Database, f.Databases)
	if err != nil {
		return nil, fmt.Errorf("config: feeds.%s: %w", name, err)
	}
	table, err := route.NewTable(f.rules(feed))
	if err != nil {
		return nil, fmt.Errorf("config: feeds.%s: %w", name, err)
	}
	p := &Plan{Name: name, DatabaseName: database, Database: f.Databases[database], Table: table, Only: feed.Only, Relay: feed.Relay}
	if p.Database.Schema == "" && p.Database.EngineName() == EngineLog {
		p.Database.Schema = defaultSchema
	}
	if feed.Create != "" {
		if p.Relay.From, err = ParseOrigin(feed.Create); err != nil {
			return nil, fmt.Errorf("config: feeds.%s.create: %w", name, err)
		}
		p.Relay.Create = true
	}
	if fallback, err := choose("destination", feed.Destination, f.Destinations); err == nil {
		p.Relay.Destination = Where(f.Destinations[fallback].URL)
	}
	p.Relay.Feed, p.Relay.Order = name, cmp.Or(feed.Order, relay.Strict)
	for _, o := range relayOptions {
		o.fill(&p.Relay)
	}
	return p, nil
}

// Router returns the publisher for the feed's relay. It needs all destinations of the table,
// opened. With the classic engine the store applies the filter instead: the relay would mark
// messages that the router skips as sent.
func (p *Plan) Router(destinations map[string]postrider.Publisher, log *slog.Logger) (*route.Router, error) {
	if log != nil {
		log = log.With("feed", p.Name)
	}
	cfg := route.Config{Only: p.Only, Logger: log}
	if p.Database.EngineName() == EngineClassic {
		cfg.Only = route.Match{}
	}
	return route.NewRouter(p.Table, destinations, cfg)
}

// rules returns the feed's routes with their destinations. A destination that cannot be determined
// stays empty.
func (f *File) rules(feed Feed) []route.Rule {
	fallback, _ := choose("destination", feed.Destination, f.Destinations)
	if len(feed.Routes) == 0 {
		return []route.Rule{{Destination: fallback}}
	}
	rules := make([]route.Rule, len(feed.Routes))
	for i, rule := range feed.Routes {
		if rule.Destination == "" && !rule.Drop {
			rule.Destination = fallback
		}
		rules[i] = rule
	}
	return rules
}

// choose returns the named entry, or the only one if the name is empty.
func choose[T any](kind, name string, all map[string]T) (string, error) {
	if name != "" {
		if _, ok := all[name]; !ok {
			return "", fmt.Errorf("there is no %s %q: there are %s%s", kind, name, list(all), didYouMean(name, keys(all)))
		}
		return name, nil
	}
	if len(all) != 1 {
		return "", fmt.Errorf("which %s? there are %s", kind, list(all))
	}
	return keys(all)[0], nil
}
