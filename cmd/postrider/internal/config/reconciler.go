package config

import (
	"cmp"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/postrider/postrider/broker/route"
	"github.com/postrider/postrider/reconcile"
)

// Reconciler is a job that finds missing effects and sends their messages again. Exactly one of
// Query, Consumer and Destination is set, and determines the kind of the job.
type Reconciler struct {
	// Database stores the job, and runs Query. Defaults to the database of Feed, or else to the
	// only one.
	Database string
	// Every and Cron define when the job runs; only one of them may be set. Default to every 5
	// minutes.
	Every time.Duration
	Cron  string
	// Zone is the time zone of Cron. Defaults to UTC.
	Zone string
	// Window is how far back the job looks. Defaults to 24 hours.
	Window time.Duration
	// Grace is the minimum age of what counts as missing. Defaults to 5 minutes.
	Grace time.Duration

	// Query finds business rows that lack their effect. Its columns are the fields of a message.
	Query string
	// Type, AggregateType and Topic apply to all messages of Query. Default to the columns of
	// Query.
	Type, AggregateType, Topic string
	// DedupKey is a template with columns of Query in braces. Defaults to the column dedup_key.
	DedupKey string

	// Feed is the feed whose deliveries are compared. Defaults to the only one.
	Feed string
	// Consumer is the consumer whose inbox must have recorded the deliveries.
	Consumer string
	// Inbox is the database of that inbox. Defaults to the feed's database.
	Inbox string
	// Only selects the messages that the consumer must have recorded. Defaults to all.
	Only route.Match
	// Destination is the destination that must hold the deliveries.
	Destination string

	// Again is how many times a message that was already sent may be sent again. Defaults to 0 for
	// Query and to 3 otherwise.
	Again int
	// AgainAfter is the minimum time between two repetitions. Defaults to 1 hour.
	AgainAfter time.Duration
	// Batch is the number of messages per transaction. Defaults to 100.
	Batch int
	// Limit is the maximum number of messages per run. Defaults to 10000.
	Limit int
	// Rate is the maximum number of messages per second. Defaults to 100.
	Rate int
	// Timeout limits each transaction. Defaults to 30 seconds.
	Timeout time.Duration
}

const (
	defaultEvery  = 5 * time.Minute
	defaultWindow = 24 * time.Hour
	defaultGrace  = 5 * time.Minute
)

// Schedule returns the schedule of the job.
func (p Reconciler) Schedule() (reconcile.Schedule, error) {
	every := ""
	if p.Every != 0 || p.Cron == "" {
		every = cmp.Or(p.Every, defaultEvery).String()
	}
	return reconcile.ParseSchedule(every, p.Cron, p.Zone)
}

// ReconcilerDatabase returns the name of the database that stores a job.
func (f *File) ReconcilerDatabase(p Reconciler) (string, error) {
	if p.Database == "" && p.Query == "" {
		feed, err := choose("feed", p.Feed, f.Feeds)
		if err != nil {
			return "", err
		}
		return choose("database", f.Feeds[feed].Database, f.Databases)
	}
	return choose("database", p.Database, f.Databases)
}

// ReconcilerFeed returns the name of the feed whose deliveries a job compares.
func (f *File) ReconcilerFeed(p Reconciler) (string, error) { return choose("feed", p.Feed, f.Feeds) }

func (r *reader) reconciler(n *yaml.Node, path string) Reconciler {
	var p Reconciler
	known := make(map[string]func(*yaml.Node, string))
	for _, o := range reconcilerOptions {
		switch target := o.field(&p).(type) {
		case *string:
			known[o.key] = r.textInto(target)
		case *int:
			known[o.key] = r.numberInto(target)
		case *time.Duration:
			known[o.key] = r.durationInto(target)
		}
	}
	known["only"] = func(n *yaml.Node, path string) { r.fields(n, path, r.match(&p.Only)) }
	r.fields(n, path, known)
	return p
}

func (c *checker) reconciler(path string, p Reconciler) {
	kinds := 0
	for _, set := range []bool{p.Query != "", p.Consumer != "", p.Destination != ""} {
		if set {
			kinds++
		}
	}
	switch {
	case kinds == 0:
		c.wrong(path, "what is it to look for? want query, consumer or destination")
	case kinds > 1:
		c.wrong(path, "query, consumer and destination contradict each other: want one of them")
	}
	for _, o := range reconcilerOptions {
		if o.kinds != 0 && kinds == 1 && o.kinds&p.kind() == 0 && o.set(&p) {
			c.wrong(path+"."+o.key, "it means nothing together with %s", p.kind())
		}
	}
	if p.kind() != ofConsumer && len(p.Only.Types)+len(p.Only.Topics)+len(p.Only.Tenants) > 0 && kinds == 1 {
		c.wrong(path+".only", "it means nothing together with %s", p.kind())
	}
	if _, err := p.Schedule(); err != nil {
		at := path + ".cron"
		if p.Cron == "" {
			at = path + ".every"
		}
		c.wrong(at, "%s", trimReconcile(err))
	}
	if window, grace := cmp.Or(p.Window, defaultWindow), cmp.Or(p.Grace, defaultGrace); window <= grace {
		c.wrong(path+".window", "window %v and grace %v contradict each other: nothing lies between", window, grace)
	}
	if p.DedupKey != "" {
		if _, err := reconcile.ParseKey(p.DedupKey); err != nil {
			c.wrong(path+".dedup_key", "%s", trimReconcile(err))
		}
	}
	c.reconcilerNames(path, p)
}

// reconcilerNames checks what the job refers to.
func (c *checker) reconcilerNames(path string, p Reconciler) {
	name, err := c.ReconcilerDatabase(p)
	if err != nil && len(c.Databases) > 0 && (p.Query != "" || p.Database != "") {
		c.wrong(path+".database", "%v", err)
	}
	if err == nil && c.Databases[name].EngineName() != EngineLog {
		c.wrong(path, "its database %q has the engine %s, where there are no reconcilers: want one with the engine %s",
			name, c.Databases[name].EngineName(), EngineLog)
	}
	if p.kind() != ofQuery && len(c.Feeds) > 0 {
		if _, err := c.ReconcilerFeed(p); err != nil {
			c.wrong(path+".feed", "%v", err)
		}
	}
	if p.Inbox != "" {
		if name, err := choose("database", p.Inbox, c.Databases); err != nil {
			c.wrong(path+".inbox", "%v", err)
		} else if engine := c.Databases[name].EngineName(); engine != EngineLog {
			c.wrong(path+".inbox", "the database %q has the engine %s, whose inboxes no reconciler can ask: want one with the engine %s", name, engine, EngineLog)
		}
	}
	if p.Destination != "" {
		if _, err := choose("destination", p.Destination, c.Destinations); err != nil {
			c.wrong(path+".destination", "%v", err)
		}
	}
}

func trimReconcile(err error) string {
	text := oneLine(err)
	for _, prefix := range []string{"reconcile: ", "cron: "} {
		if len(text) > len(prefix) && text[:len(prefix)] == prefix {
			text = text[len(prefix):]
		}
	}
	return text
}

// showReconciler returns the job as it would stand in a file, with its defaults.
func (f *File) showReconciler(p Reconciler) map[string]any {
	shown := make(map[string]any)
	for _, o := range reconcilerOptions {
		switch target := o.field(&p).(type) {
		case *string:
			if *target != "" {
				shown[o.key] = *target
			}
		case *int:
			if *target != 0 {
				shown[o.key] = *target
			} else if o.fallback != nil {
				shown[o.key] = o.fallback
			}
		case *time.Duration:
			if *target != 0 {
				shown[o.key] = target.String()
			} else if d, ok := o.fallback.(time.Duration); ok && (o.key != "every" || p.Cron == "") {
				shown[o.key] = d.String()
			}
		}
	}
	if name, err := f.ReconcilerDatabase(p); err == nil {
		shown["database"] = name
	}
	if name, err := f.ReconcilerFeed(p); err == nil && p.kind() != ofQuery {
		shown["feed"] = name
	}
	if len(p.Only.Types)+len(p.Only.Topics)+len(p.Only.Tenants) > 0 {
		shown["only"] = RedactedMatch(p.Only)
	}
	return shown
}

func (k reconcilerKind) String() string {
	switch k {
	case ofQuery:
		return "query"
	case ofConsumer:
		return "consumer"
	default:
		return "destination"
	}
}
