// Package doctor looks for what is wrong, or will be, around a log: the server, the schema, the log, its feeds and their
// brokers. It only looks: every question to a database is asked in a read-only transaction.
package doctor

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider/cmd/postrider/internal/config"
)

// Severity is how much a finding matters.
type Severity string

// From nothing to much.
const (
	OK      Severity = "ok"
	Info    Severity = "info"    // good to know
	Warning Severity = "warning" // nothing is lost yet
	Problem Severity = "problem" // messages are not carried, or can be lost
)

var severities = []Severity{Problem, Warning, Info, OK}

// Finding is what one check has found.
type Finding struct {
	Check    string   `json:"check"`
	Severity Severity `json:"severity"`
	Subject  string   `json:"subject,omitempty"` // the database or the destination
	Finding  string   `json:"finding"`
	Why      string   `json:"why,omitempty"` // it matters
	Fix      string   `json:"fix,omitempty"` // a command or SQL to type
}

// Database is one log to be examined.
type Database struct {
	Name   string // for people
	Pool   *pgxpool.Pool
	Schema string
	Flags  string // of a command that works on it, each after a space
	// Feeds are those of this database in the configuration file. HasFile tells a file without any from no file.
	Feeds   []*config.Plan
	HasFile bool
	// Logs are the destinations of the file in which a name is a log of its own: a topic, stream or queue.
	Logs []string
}

// Destination is one broker to be examined.
type Destination struct {
	Name   string // for people
	Config config.Destination
	Names  []string // of topics, subjects or queues that are known to be used there
}

// Run examines everything and returns at least one finding for each check, the worst first.
func Run(ctx context.Context, databases []Database, destinations []Destination) []Finding {
	patients := make([]*patient, len(databases))
	for i, d := range databases {
		patients[i] = newPatient(d)
	}
	return run(ctx, patients, destinations)
}

func run(ctx context.Context, patients []*patient, destinations []Destination) []Finding {
	results := make([][]Finding, len(patients)+len(destinations))
	var asked sync.WaitGroup
	for i, p := range patients {
		asked.Go(func() { results[i] = p.examine(ctx) })
	}
	for i, d := range destinations {
		asked.Go(func() { results[len(patients)+i] = d.examine(ctx) })
	}
	asked.Wait()
	all := slices.Concat(results...)
	Sort(all)
	return all
}

// Sort puts the worst findings first and leaves the order of equals as it is.
func Sort(findings []Finding) {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Compare(slices.Index(severities, a.Severity), slices.Index(severities, b.Severity))
	})
}
