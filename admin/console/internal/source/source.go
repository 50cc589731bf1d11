// Package source is what a console shows: databases and relays, as the program that serves it hands them over.
package source

import (
	"context"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/idempotency"
	"github.com/postrider/postrider/reconcile"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/saga"
)

// Database is one database. Parts that are nil have no pages.
type Database struct {
	Name string
	// Schema is where the log lies, for the commands that the console tells. Defaults to "postrider".
	Schema      string
	DeadLetters admin.DeadLetters
	Feeds       admin.Feeds
	Records     admin.Records
	Log         admin.Log
	Gauges      admin.Gauges
	// Problems are what relays have reported of destinations.
	Problems    admin.Problems
	Replays     admin.Replays
	Keys        idempotency.Admin
	Sagas       saga.Admin
	Reconcilers Reconcilers
	// RunReconciler runs a job now. Nil where this process has none.
	RunReconciler func(ctx context.Context, by admin.By, job string) (reconcile.Counts, error)
	// Doctor looks for what is wrong. Nil where nobody can.
	Doctor func(ctx context.Context) ([]Finding, error)
}

// Reconcilers are the reconcilers of a database.
type Reconcilers interface {
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
