// Package peer implements the compared systems, one file each. Each is set up as its own
// documentation advises, and lists the settings that differ from its defaults.
package peer

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"runtime/debug"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Message is what a producer enqueues beside its business row.
type Message struct {
	ID      uuid.UUID
	Key     string
	Payload []byte
}

// Job describes the source and the target of a relay.
type Job struct {
	Peer    string
	DSN     string // of the database, which is new for each trial
	Broker  string // one of broker.Kinds
	Address string
	Topic   string
	// Stock leaves every setting of the peer at its default. Otherwise the peer is configured for
	// low latency, as far as its documentation offers that.
	Stock bool
}

// Programs are files that the external peers need.
type Programs struct {
	Self      string // this program, for relays that are Go packages
	Postrider string
	Debezium  string // the folder of Debezium Server; empty: not measured
	Scratch   string // a folder for the relays' files
}

// Setting is one setting that differs, or may differ, from its default.
type Setting struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	Default string `json:"default,omitempty"`
}

// Enqueue writes messages in the producer's transaction.
type Enqueue func(ctx context.Context, tx pgx.Tx, msgs ...Message) error

// Peer is a system that delivers messages from a database to a broker.
type Peer interface {
	// Name returns the name in tables and on the command line.
	Name() string
	// Version returns the version that is run.
	Version(p Programs) (string, error)
	// Settings returns the settings.
	Settings(j Job) []Setting
	// Setup prepares a new database, before the first message.
	Setup(ctx context.Context, db *pgxpool.Pool, j Job) (Enqueue, error)
	// Relay returns the command of the relay process, not started yet.
	Relay(j Job, p Programs) (*exec.Cmd, error)
	// Relays returns how many processes its documentation advises where others have many workers in
	// one process.
	Relays() int
	// Clear removes what would prevent dropping the database. The relay has ended.
	Clear(ctx context.Context, db *pgxpool.Pool, j Job) error
}

// runner is a relay that is a Go package; its process is this program again.
type runner interface {
	run(ctx context.Context, db *pgxpool.Pool, j Job) error
}

// All returns the peers in the order of the tables, Postrider first.
func All() []Peer {
	return []Peer{
		postrider{}, debezium{}, watermill{}, watermill{queue: true}, river{}, loop{}, loop{deletes: true}, visibility{}, oagudo{},
	}
}

// Find returns the peer with a name.
func Find(name string) (Peer, error) {
	for _, p := range All() {
		if p.Name() == name {
			return p, nil
		}
	}
	return nil, fmt.Errorf("peer: there is no %q", name)
}

// Run delivers until ctx ends, as the process described by a peer's Relay.
func Run(ctx context.Context, job string) error {
	var j Job
	if err := json.Unmarshal([]byte(job), &j); err != nil {
		return err
	}
	p, err := Find(j.Peer)
	if err != nil {
		return err
	}
	r, ok := p.(runner)
	if !ok {
		return fmt.Errorf("peer: %s is a program of its own", j.Peer)
	}
	config, err := pgxpool.ParseConfig(j.DSN)
	if err != nil {
		return err
	}
	config.MaxConns = 16 // more than any of them uses concurrently
	db, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer db.Close()
	return r.run(ctx, db, j)
}

// inside is embedded by peers that are Go packages.
type inside struct{}

func (inside) Relay(j Job, p Programs) (*exec.Cmd, error) {
	job, err := json.Marshal(j)
	return exec.Command(p.Self, "relay", string(job)), err
}

func (inside) Relays() int { return 1 }

func (inside) Clear(context.Context, *pgxpool.Pool, Job) error { return nil }

// module returns the version of a module that is linked into this program.
func module(path string) (string, error) {
	info, ok := debug.ReadBuildInfo()
	if ok {
		for _, dep := range info.Deps {
			if dep.Path == path {
				return dep.Version, nil
			}
		}
	}
	return "", fmt.Errorf("peer: this program was built without %s", path)
}

// eager is the polling interval of peers that poll, unless they are stock.
const eager = 10 * time.Millisecond

// poll returns the setting of a peer's polling interval.
func (j Job) poll(name string, stock time.Duration) Setting {
	return Setting{Name: name, Value: j.interval(stock).String(), Default: stock.String()}
}

func (j Job) interval(stock time.Duration) time.Duration {
	if j.Stock {
		return stock
	}
	return eager
}

// execute runs statements one at a time.
func execute(ctx context.Context, db *pgxpool.Pool, statements ...string) error {
	for _, sql := range statements {
		if _, err := db.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%w in %s", err, sql)
		}
	}
	return nil
}
