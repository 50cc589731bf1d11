// Package source defines what a console shows: databases and relays, as the serving program
// provides them.
package source

import (
	"context"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/idempotency"
	"github.com/postrider/postrider/reconcile"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/saga"
)

// Database is a database to show. A nil part disables its pages.
type Database struct {
	Name string
	// Schema is the schema of the log, for the commands that the console suggests. Defaults to
	// "postrider".
	Schema      string
	DeadLetters admin.DeadLetters
	Feeds       admin.Feeds
	Records     admin.Records
	Log         admin.Log
	Gauges      admin.Gauges
	// Problems are the outages that relays have reported.
	Problems    admin.Problems
	Replays     admin.Replays
	Keys        idempotency.Admin
	Sagas       saga.Admin
	Reconcilers Reconcilers
	// RunReconciler runs a job now. Nil if this process runs no reconcilers.
	RunReconciler func(ctx context.Context, by admin.By, job string) (reconcile.Counts, error)
	// Doctor runs the checks of the doctor. Nil if they are not supported.
	Doctor func(ctx context.Context) ([]Finding, error)
}

// Reconcilers are the reconcilers of a database.
type Reconcilers interface {
	Jobs(ctx context.Context) ([]reconcile.State, error)
}

// Finding is a finding of the doctor.
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
	To       string // names of its destinations, without secrets
	Stats    relay.Stats
}
