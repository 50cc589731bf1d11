package config

import "time"

// reconcilerKind is the kind of a job.
type reconcilerKind int

const (
	ofQuery reconcilerKind = 1 << iota
	ofConsumer
	ofDestination
)

func (p *Reconciler) kind() reconcilerKind {
	switch {
	case p.Query != "":
		return ofQuery
	case p.Consumer != "":
		return ofConsumer
	default:
		return ofDestination
	}
}

// reconcilerOption is a key of a reconciler in the file.
type reconcilerOption struct {
	key, doc string
	kinds    reconcilerKind // the kinds that have it; 0 means all
	fallback any
	field    func(*Reconciler) any // *string, *int or *time.Duration
}

var reconcilerOptions = []reconcilerOption{
	{"database", "Database that stores the job and runs the query. Default: that of the feed, else the only one.", 0, nil,
		func(p *Reconciler) any { return &p.Database }},
	{"every", "Time from the start of one run to the next.", 0, defaultEvery, func(p *Reconciler) any { return &p.Every }},
	{"cron", "Schedule, instead of every: minute hour day month weekday.", 0, nil, func(p *Reconciler) any { return &p.Cron }},
	{"zone", "Time zone of cron. Default: UTC.", 0, nil, func(p *Reconciler) any { return &p.Zone }},
	{"window", "How far back it looks.", 0, defaultWindow, func(p *Reconciler) any { return &p.Window }},
	{"grace", "Minimum age of what counts as missing, so that messages on their way are not sent again.", 0, defaultGrace,
		func(p *Reconciler) any { return &p.Grace }},
	{"query", "SELECT of business rows that lack their effect, between $1 and $2. Its columns are fields of a message.", 0, nil,
		func(p *Reconciler) any { return &p.Query }},
	{"type", "Type of all messages. Default: column type.", ofQuery, nil, func(p *Reconciler) any { return &p.Type }},
	{"aggregate_type", "Aggregate type of all messages. Default: column aggregate_type.", ofQuery, nil,
		func(p *Reconciler) any { return &p.AggregateType }},
	{"topic", "Topic of all messages. Default: column topic.", ofQuery, nil, func(p *Reconciler) any { return &p.Topic }},
	{"dedup_key", "Natural key of the fact, with columns in braces, such as enrollment:{id}. Default: column dedup_key.", ofQuery, nil,
		func(p *Reconciler) any { return &p.DedupKey }},
	{"feed", "Feed whose deliveries are compared. Default: the only one.", ofConsumer | ofDestination, nil,
		func(p *Reconciler) any { return &p.Feed }},
	{"consumer", "Consumer whose inbox must have recorded what the feed has delivered.", 0, nil, func(p *Reconciler) any { return &p.Consumer }},
	{"inbox", "Database of that inbox. Default: that of the feed.", ofConsumer, nil, func(p *Reconciler) any { return &p.Inbox }},
	{"destination", "Destination that must hold what the feed has delivered to it.", 0, nil, func(p *Reconciler) any { return &p.Destination }},
	{"again", "How many times a message that was already sent may be sent again. Default: 0 with query, otherwise 3.", 0, nil,
		func(p *Reconciler) any { return &p.Again }},
	{"again_after", "Minimum time between two repetitions.", 0, time.Hour, func(p *Reconciler) any { return &p.AgainAfter }},
	{"batch", "Maximum number of messages in one transaction.", 0, 100, func(p *Reconciler) any { return &p.Batch }},
	{"limit", "Maximum number of messages of one run.", 0, 10000, func(p *Reconciler) any { return &p.Limit }},
	{"rate", "Maximum number of messages a second.", 0, 100, func(p *Reconciler) any { return &p.Rate }},
	{"timeout", "Timeout of a transaction.", 0, 30 * time.Second, func(p *Reconciler) any { return &p.Timeout }},
}

func (o *reconcilerOption) set(p *Reconciler) bool {
	switch field := o.field(p).(type) {
	case *string:
		return *field != ""
	case *int:
		return *field != 0
	case *time.Duration:
		return *field != 0
	}
	return false
}

func reconcilerSchema() object {
	properties := object{"only": with(ref("match"), "description", "Messages that the consumer must have recorded.")}
	for _, o := range reconcilerOptions {
		switch o.field(&Reconciler{}).(type) {
		case *string:
			properties[o.key] = text(o.doc)
		case *int:
			properties[o.key] = number(o.doc, 1)
		case *time.Duration:
			properties[o.key] = duration(o.doc)
		}
		property, _ := properties[o.key].(object)
		switch d := o.fallback.(type) {
		case time.Duration:
			with(property, "default", d.String())
		case int:
			with(property, "default", d)
		}
	}
	return strictObject(properties)
}
