package console

import (
	"context"
	"log/slog"
	"time"

	"github.com/postrider/postrider/console/auth"
	"github.com/postrider/postrider/desk"
	"github.com/postrider/postrider/idempotency"
	"github.com/postrider/postrider/reconcile"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/saga"
)

// Config is what a console shows, and to whom.
type Config struct {
	// Databases are what there is to see, in the order in which they are offered. At least one.
	Databases []Database
	// Relays returns those of this process; nil if it has none. They know more than the database does: rates of failures,
	// and times from enqueue to confirmation.
	Relays func() []Relay
	// Access says who may come in. The zero value lets everybody in as admin, and is refused unless the console is only
	// reached from this machine: see [auth.Config.Validate].
	Access auth.Config
	// Prefix is the path that the console is mounted at, such as "/postrider". Defaults to "/".
	Prefix string
	// Redact are JSON paths whose values nobody gets to see, such as "$.card.number" or "$..password". Defaults to none.
	Redact []string
	// TraceURL leads to a trace in another program, with "{trace_id}" in it. Defaults to no link.
	TraceURL string
	// Sample is the time between two looks at the database. Defaults to 2 s.
	Sample time.Duration
	// Version is that of the program, for people.
	Version string
	// Logger is told of what operators do and of what fails. Defaults to [slog.Default].
	Logger *slog.Logger
}

// Database is one database. Parts that are nil have no pages.
type Database struct {
	Name    string
	Letters desk.Letters
	Feeds   desk.Feeds
	Records desk.Records
	Log     desk.Log
	Gauges  desk.Gauges
	Replays desk.Replays
	Keys    idempotency.Desk
	Sagas   saga.Desk
	Patrols Patrols
	// RunPatrol runs a job now. Nil where this process has none.
	RunPatrol func(ctx context.Context, job string) (reconcile.Counts, error)
	// Doctor looks for what is wrong. Nil where nobody can.
	Doctor func(ctx context.Context) ([]Finding, error)
}

// Patrols are the patrol jobs of a database.
type Patrols interface {
	Jobs(ctx context.Context) ([]reconcile.State, error)
}

// Finding is what a doctor has found.
type Finding struct {
	Check    string `json:"check"`
	Severity string `json:"severity" enum:"problem,warning,info,ok"`
	Subject  string `json:"subject,omitempty"`
	Finding  string `json:"finding"`
	Why      string `json:"why,omitempty"`
	Fix      string `json:"fix,omitempty"`
}

// Relay is a relay of this process.
type Relay struct {
	Database string // as in [Database]
	Feed     string
	Name     string // as in relay.Config
	To       string // where it leads, for people, without secrets
	Stats    relay.Stats
}
