// Package scale defines the output of "postrider bench scale", which "postrider plan" computes
// with: the cost of messages in processor time, WAL, statements, connections, memory and disk on
// one machine.
package scale

import (
	"slices"
	"time"
)

// Set is the result of one run.
type Set struct {
	Taken   time.Time `json:"taken"`
	Command string    `json:"command"`
	Build   string    `json:"build"` // version of the program
	Machine Machine   `json:"machine"`
	Server  Server    `json:"server"`

	Seconds float64 `json:"seconds"` // length of a phase
	Rounds  int     `json:"rounds"`
	Writers int     `json:"writers"`

	// Business are the producers' transactions without messages: a row, and the commit.
	Business []Phase `json:"business"`
	Cells    []Cell  `json:"cells"`
	// Sequence is how many numbers per second one sequence assigns to concurrent sessions.
	Sequence float64 `json:"sequence_per_second"`
	// LeftOut lists the cells that were not measured, with the reasons.
	LeftOut []string `json:"left_out,omitempty"`
}

// Machine is the machine of the run. Database, relays and producers share it.
type Machine struct {
	Processor string `json:"processor"`
	Cores     int    `json:"cores"`
	Memory    int64  `json:"memory_bytes"`
	System    string `json:"system"`
}

// Server is the database server with its relevant settings.
type Server struct {
	Version  string            `json:"version"`
	Settings map[string]string `json:"settings"`
}

// The series: what a cell varies. The rest is as in [Base].
const (
	Base      = "base"
	Payload   = "payload"
	Shards    = "shards"
	Relays    = "relays"
	Feeds     = "feeds"
	Databases = "databases"
	Broker    = "broker"
	Rate      = "rate"  // producers at a steady rate instead of full load
	Idle      = "idle"  // relays without any message
	Drain     = "drain" // one relay and a backlog
	Check     = "check" // several relays, feeds or databases at a steady rate, to validate the model
)

// Cell is the measurement of one layout under one load.
type Cell struct {
	Series    string `json:"series"`
	Payload   int    `json:"payload"` // bytes of a message's payload
	Shards    int    `json:"shards"`
	Relays    int    `json:"relays"`
	Feeds     int    `json:"feeds"`
	Databases int    `json:"databases"`
	Rate      int    `json:"rate"` // messages a second; 0 means full load, or none at all if idle
	To        string `json:"to"`   // the broker

	Bare    []Phase `json:"bare,omitempty"` // producers without a relay
	Relayed []Phase `json:"relayed"`        // the same with relays
	Disk    float64 `json:"disk_bytes,omitempty"`
}

// Phase is one measurement. All figures are totals of the phase.
type Phase struct {
	Seconds   float64 `json:"seconds"`
	Messages  int64   `json:"messages"`  // committed
	Published int64   `json:"published"` // confirmed, counted for each feed

	CPU       CPU   `json:"cpu_seconds"`
	WAL       int64 `json:"wal_bytes"`
	FullPages int64 `json:"wal_full_pages"` // of these, full page images, written after a checkpoint

	Reads    int64 `json:"reads"`
	Settles  int64 `json:"settles"`
	Balances int64 `json:"balances"`

	ProducerConnections int   `json:"producer_connections"`
	RelayConnections    int   `json:"relay_connections"`
	RelayMemory         int64 `json:"relay_memory_bytes"` // resident, of all relay processes at the end
}

// CPU is processor time in seconds, by its user.
type CPU struct {
	Producers float64 `json:"producer_backends"` // the server, for producers
	Readers   float64 `json:"relay_backends"`    // the server, for relays
	Rest      float64 `json:"rest_of_server"`    // background processes of the server: writers, checkpoints, vacuum
	Relays    float64 `json:"relay_processes"`
}

// Server returns the processor time of the whole database server.
func (c CPU) Server() float64 { return c.Producers + c.Readers + c.Rest }

// Statements returns the number of statements that relays have executed. Each call of the store is
// one statement in one round trip.
func (p Phase) Statements() int64 { return p.Reads + p.Settles + p.Balances }

// PerSecond returns the rate of committed messages.
func (p Phase) PerSecond() float64 { return over(float64(p.Messages), p.Seconds) }

// PublishedPerSecond returns the rate of confirmed messages.
func (p Phase) PublishedPerSecond() float64 { return over(float64(p.Published), p.Seconds) }

// PerCommitted divides a figure by the number of committed messages.
func PerCommitted(figure func(Phase) float64) func(Phase) float64 {
	return func(p Phase) float64 { return over(figure(p), float64(p.Messages)) }
}

// PerPublished divides a figure by the number of confirmed messages.
func PerPublished(figure func(Phase) float64) func(Phase) float64 {
	return func(p Phase) float64 { return over(figure(p), float64(p.Published)) }
}

// PerSecond divides a figure by the duration.
func PerSecond(figure func(Phase) float64) func(Phase) float64 {
	return func(p Phase) float64 { return over(figure(p), p.Seconds) }
}

// Figures of a phase, for [Median].
var (
	ProducerCPU = func(p Phase) float64 { return p.CPU.Producers }
	ReaderCPU   = func(p Phase) float64 { return p.CPU.Readers }
	RestCPU     = func(p Phase) float64 { return p.CPU.Rest }
	ServerCPU   = func(p Phase) float64 { return p.CPU.Server() }
	RelayCPU    = func(p Phase) float64 { return p.CPU.Relays }
	WAL         = func(p Phase) float64 { return float64(p.WAL) }
	Statements  = func(p Phase) float64 { return float64(p.Statements()) }
)

// Median returns the median of a figure over the rounds, or 0 without rounds.
func Median(phases []Phase, figure func(Phase) float64) float64 {
	if len(phases) == 0 {
		return 0
	}
	values := make([]float64, len(phases))
	for i, p := range phases {
		values[i] = figure(p)
	}
	slices.Sort(values)
	middle := len(values) / 2
	if len(values)%2 == 1 {
		return values[middle]
	}
	return (values[middle-1] + values[middle]) / 2
}

// over returns a/b, or 0 for a zero b, because JSON has no infinity.
func over(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// In returns the cells of a series, in the order in which they were measured.
func (s *Set) In(series string) []Cell {
	var found []Cell
	for _, c := range s.Cells {
		if c.Series == series {
			found = append(found, c)
		}
	}
	return found
}

// Base returns the cell that the others vary, and reports whether it was measured.
func (s *Set) Base() (Cell, bool) {
	base := s.In(Base)
	if len(base) == 0 {
		return Cell{}, false
	}
	return base[0], true
}
