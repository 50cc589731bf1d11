// Package doctor finds current and future problems of a log: in the server, the schema, the log,
// its feeds and their brokers. It only reads: every query runs in a read-only transaction.
package doctor

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider/cmd/postrider/internal/config"
)

// Severity is the importance of a finding.
type Severity string

// The severities, in ascending order.
const (
	OK      Severity = "ok"
	Info    Severity = "info"    // for information
	Warning Severity = "warning" // nothing is lost yet
	Problem Severity = "problem" // messages are not delivered, or can be lost
)

var severities = []Severity{Problem, Warning, Info, OK}

// Finding is a result of one check.
type Finding struct {
	Check    string   `json:"check"`
	Severity Severity `json:"severity"`
	Subject  string   `json:"subject,omitempty"` // the database or the destination
	Finding  string   `json:"finding"`
	Why      string   `json:"why,omitempty"` // why it matters
	Fix      string   `json:"fix,omitempty"` // a command or SQL to type
}

// Database is a log to examine.
type Database struct {
	Name   string // for people
	Pool   *pgxpool.Pool
	Schema string
	Flags  string // the flags of a command on it, each after a space
	// Feeds are the feeds of this database in the configuration file. HasFile distinguishes a file
	// without feeds from no file.
	Feeds   []*config.Plan
	HasFile bool
	// Logs are the destinations of the file in which each name is a log of its own: a topic, stream
	// or queue.
	Logs []string
}

// Destination is a broker to examine.
type Destination struct {
	Name   string // for people
	Config config.Destination
	Names  []string // the topics, subjects or queues that are known to be used
}

// Run examines everything and returns at least one finding for each check, worst first.
func Run(ctx context.Context, databases []Database, destinations []Destination) []Finding {
	targets := make([]*target, len(databases))
	for i, d := range databases {
		targets[i] = newTarget(d)
	}
	return run(ctx, targets, destinations)
}

func run(ctx context.Context, targets []*target, destinations []Destination) []Finding {
	results := make([][]Finding, len(targets)+len(destinations))
	var asked sync.WaitGroup
	for i, p := range targets {
		asked.Go(func() { results[i] = p.examine(ctx) })
	}
	for i, d := range destinations {
		asked.Go(func() { results[len(targets)+i] = d.examine(ctx) })
	}
	asked.Wait()
	all := slices.Concat(results...)
	Sort(all)
	return all
}

// Sort sorts findings by severity, worst first. It is stable.
func Sort(findings []Finding) {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Compare(slices.Index(severities, a.Severity), slices.Index(severities, b.Severity))
	})
}
