package config

import (
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/route"
	"github.com/postrider/postrider/relay"
)

// Validate reports all mistakes, as [Mistakes]. A File from [Load] or [Parse] is valid.
func (f *File) Validate() error { return f.check().asError() }

var (
	nameForm   = regexp.MustCompile(nameForms)
	schemaForm = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,47}$`)
)

// checker collects the mistakes of a file whose values could be read.
type checker struct {
	*File
	found Mistakes
}

func (c *checker) wrong(path, format string, args ...any) {
	c.found = append(c.found, c.source.mistake(path, format, args...))
}

func (f *File) check() Mistakes {
	c := &checker{File: f}
	c.section("databases", keys(f.Databases))
	c.section("destinations", keys(f.Destinations))
	c.section("feeds", keys(f.Feeds))
	for _, name := range keys(f.Databases) {
		c.database("databases."+name, f.Databases[name])
	}
	for _, name := range keys(f.Destinations) {
		c.destination("destinations."+name, f.Destinations[name])
	}
	for _, name := range keys(f.Feeds) {
		c.feed("feeds."+name, f.Feeds[name])
	}
	for _, name := range keys(f.Reconcilers) {
		c.named("reconcilers", name)
		c.reconciler("reconcilers."+name, f.Reconcilers[name])
	}
	c.sharedTables()
	if _, err := f.Pools(keys(f.Feeds)); err != nil {
		c.wrong("connections", "%v", err)
	}
	if err := f.Health.Validate(); err != nil {
		c.wrong("health.listen", "%v", err)
	}
	f.Console.check(c.wrong)
	return c.found
}

func (c *checker) section(path string, names []string) {
	if len(names) == 0 {
		c.wrong(path, "there are none: want at least one")
	}
	for _, name := range names {
		c.named(path, name)
	}
}

func (c *checker) named(path, name string) {
	if !nameForm.MatchString(name) {
		c.wrong(path+"."+name, "%q is not a name: want letters, digits, - and _, at most 63 of them", name)
	}
}

func (c *checker) database(path string, d Database) {
	u, err := url.Parse(d.URL)
	switch {
	case d.URL == "":
		c.wrong(path+".url", "the address is missing")
	case !strings.Contains(d.URL, "://") && strings.Contains(d.URL, "="): // key=value pairs
	case err == nil && isMySQL(d.URL):
		if strings.Trim(u.Path, "/") == "" {
			c.wrong(path+".url", "the address names no database: add /DATABASE behind the host")
		}
	case err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql"):
		c.wrong(path+".url", "this is not an address such as postgres://user@host/database or mysql://user@host/database") // do not quote it: it may hold a password
	}
	if d.Schema != "" && (!schemaForm.MatchString(d.Schema) || strings.HasPrefix(d.Schema, "pg_")) {
		c.wrong(path+".schema", "%q is not a name of a schema: want lower-case letters, digits and _, at most 48 of them, "+
			"not starting with a digit or pg_", d.Schema)
	}
	if d.Home != "" && d.EngineName() != EngineLog {
		c.wrong(path+".home", "only the log has one")
	}
	if len(d.Home) > 100 {
		c.wrong(path+".home", "it has %d bytes: want at most 100", len(d.Home))
	}
	if d.MaxLogSize != 0 && d.EngineName() != EngineLog {
		c.wrong(path+".max_log_size", "only the log has it")
	}
	c.table(path, d)
}

func (c *checker) destination(path string, d Destination) {
	if d.URL == "" {
		c.wrong(path+".url", "the address is missing")
		return
	}
	at := path + ".url"
	if d.Broker != "" {
		at = path + ".broker"
	}
	driver, err := d.Driver()
	if err != nil {
		c.wrong(at, "%s", strings.TrimPrefix(err.Error(), "broker: "))
		return
	}
	// Check each option on its own, because each has its own position in the file.
	for _, name := range keys(d.Options) {
		if err := driver.Check(map[string]string{name: d.Options[name]}); err != nil {
			c.wrong(path+"."+name, "%s", strings.TrimPrefix(oneLine(err), name+": "))
		}
	}
	// Do not check the scheme here: drivers of the same protocol share schemes.
	if _, err := url.Parse(d.URL); err != nil {
		c.wrong(path+".url", "this is not a URL") // do not quote the error: it contains the URL, which may hold a password
	}
}

func (c *checker) feed(path string, feed Feed) {
	if _, err := choose("database", feed.Database, c.Databases); err != nil && len(c.Databases) > 0 {
		c.wrong(path+".database", "%v", err)
	}
	if feed.Order != "" && feed.Order != relay.Strict && feed.Order != relay.Skip {
		c.wrong(path+".order", "%q is not a policy: want %s or %s", feed.Order, relay.Strict, relay.Skip)
	}
	// Build a table only to check the patterns of the filter.
	_, err := route.NewTable([]route.Rule{{Match: feed.Only, Drop: true}})
	c.rules(err, func(int) string { return path + ".only" })
	for _, m := range checkRelay(feed.Relay) {
		at := path + ".relay"
		for _, key := range slices.Backward(m.keys) {
			if _, ok := c.source.places[at+"."+key]; ok || len(c.source.places) == 0 {
				at = path + ".relay." + key
			}
		}
		c.wrong(at, "%s", m.message)
	}
	c.routes(path, feed)
}

func (c *checker) routes(path string, feed Feed) {
	if feed.Destination != "" {
		if _, err := choose("destination", feed.Destination, c.Destinations); err != nil {
			c.wrong(path+".destination", "%v", err)
		}
	}
	at := func(i int) string {
		if len(feed.Routes) == 0 {
			return path
		}
		return item(path+".routes", i)
	}
	rules := c.File.rules(feed)
	for i := range rules {
		rule := &rules[i]
		if rule.Drop {
			continue
		}
		_, err := choose("destination", rule.Destination, c.Destinations)
		// Report an unknown default destination once for the feed or the file, not for each route.
		if err != nil && len(c.Destinations) > 0 && (rule.Destination != "" || feed.Destination == "") {
			c.wrong(at(i)+".destination", "%v", err)
		}
		if rule.Destination == "" {
			rule.Destination = "none"
		}
	}
	_, err := route.NewTable(rules)
	c.rules(err, at)
}

// rules reports the errors of rules at the positions of their fields.
func (c *checker) rules(err error, at func(rule int) string) {
	for _, err := range flatten(err) {
		var e *route.RuleError
		if errors.As(err, &e) {
			path := at(e.Rule)
			if e.Field != "" {
				path += "." + e.Field
			}
			c.wrong(path, "%s", oneLine(e.Err))
		}
	}
}

// Warnings returns settings that are allowed but probably unintended: unused destinations and
// databases, and options that only consumers use.
func (f *File) Warnings() Mistakes {
	c := &checker{File: f}
	databases, destinations := make(map[string]bool), make(map[string]bool)
	for _, feed := range f.Feeds {
		if name, err := choose("database", feed.Database, f.Databases); err == nil {
			databases[name] = true
		}
		for _, rule := range f.rules(feed) {
			destinations[rule.Destination] = true
		}
	}
	for _, p := range f.Reconcilers {
		if name, err := f.ReconcilerDatabase(p); err == nil {
			databases[name] = true
		}
		databases[p.Inbox], destinations[p.Destination] = true, true
	}
	for _, name := range keys(f.Databases) {
		if !databases[name] {
			c.wrong("databases."+name, "no feed uses it")
		}
	}
	for _, name := range keys(f.Destinations) {
		if !destinations[name] {
			c.wrong("destinations."+name, "no feed uses it")
		}
		for _, option := range broker.Common() {
			if _, ok := f.Destinations[name].Options[option.Name]; ok && forConsumers(option.Name) {
				c.wrong("destinations."+name+"."+option.Name, "only consumers use it; the name under which messages are sent is a route's")
			}
		}
	}
	return c.found.Sorted()
}

// forConsumers reports whether publishers ignore a common option.
func forConsumers(option string) bool {
	return option == "name" || option == "group" || option == "in_flight"
}
