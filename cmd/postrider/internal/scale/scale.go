// Package scale is what "postrider bench scale" measures on one machine, and what "postrider plan" computes with: the cost of
// messages in processor time, WAL, statements, connections, memory and disk.
package scale

import (
	"slices"
	"time"
)

// Set is all that one run has measured.
type Set struct {
	Taken   time.Time `json:"taken"`
	Command string    `json:"command"`
	Build   string    `json:"build"` // version of the program
	Machine Machine   `json:"machine"`
	Server  Server    `json:"server"`

	Seconds float64 `json:"seconds"` // length of a phase
	Rounds  int     `json:"rounds"`
	Writers int     `json:"writers"`

	// Business is the producers' transactions without any message: a row, and the commit.
	Business []Phase `json:"business"`
	Cells    []Cell  `json:"cells"`
	// Sequence is how many numbers of one sequence the server gives out in a second to all who ask at once.
	Sequence float64 `json:"sequence_per_second"`
	// LeftOut says which cells were not measured, and why.
	LeftOut []string `json:"left_out,omitempty"`
}

// Machine is where it was measured. Database, relays and producers share it.
type Machine struct {
	Processor string `json:"processor"`
	Cores     int    `json:"cores"`
	Memory    int64  `json:"memory_bytes"`
	System    string `json:"system"`
}

// Server is the database server, and what of its settings matters here.
type Server struct {
	Version  string            `json:"version"`
	Settings map[string]string `json:"settings"`
}

// What a cell varies; the rest is as in [Base].
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
	Check     = "check" // several relays, feeds or databases at a steady rate: what plans are held against
)

// Cell is one layout under one load.
type Cell struct {
	Series    string `json:"series"`
	Payload   int    `json:"payload"` // bytes of a message's payload
	Shards    int    `json:"shards"`
	Relays    int    `json:"relays"`
	Feeds     int    `json:"feeds"`
	Databases int    `json:"databases"`
	Rate      int    `json:"rate"` // messages a second; 0 means full load, or none at all if idle
	To        string `json:"to"`   // the broker

	Bare    []Phase `json:"bare,omitempty"` // producers with their messages, and no relay
	Relayed []Phase `json:"relayed"`        // the same beside relays
	Disk    float64 `json:"disk_bytes,omitempty"`
}

// Phase is one measurement. All figures are those of the phase as a whole.
type Phase struct {
	Seconds   float64 `json:"seconds"`
	Messages  int64   `json:"messages"`  // committed
	Published int64   `json:"published"` // confirmed, counted for each feed

	CPU       CPU   `json:"cpu_seconds"`
	WAL       int64 `json:"wal_bytes"`
	FullPages int64 `json:"wal_full_pages"` // copies of whole pages that are part of it, the first after a checkpoint

	Reads    int64 `json:"reads"`
	Settles  int64 `json:"settles"`
	Balances int64 `json:"balances"`

	ProducerConnections int   `json:"producer_connections"`
	RelayConnections    int   `json:"relay_connections"`
	RelayMemory         int64 `json:"relay_memory_bytes"` // resident, of all relay processes at the end
}

// CPU is processor time in seconds, by who has used it.
type CPU struct {
	Producers float64 `json:"producer_backends"` // the server, for producers
	Readers   float64 `json:"relay_backends"`    // the server, for relays
	Rest      float64 `json:"rest_of_server"`    // the server, for nobody: its writers, checkpoints, vacuum
	Relays    float64 `json:"relay_processes"`
}

// Server is what the whole database server has used.
func (c CPU) Server() float64 { return c.Producers + c.Readers + c.Rest }

// Statements is how many a relay has executed. Each call of the store is one, in one round trip.
func (p Phase) Statements() int64 { return p.Reads + p.Settles + p.Balances }

// PerSecond is how many messages were committed.
func (p Phase) PerSecond() float64 { return over(float64(p.Messages), p.Seconds) }

// PublishedPerSecond is how many messages were confirmed.
func (p Phase) PublishedPerSecond() float64 { return over(float64(p.Published), p.Seconds) }

// PerCommitted divides a figure by the committed messages.
func PerCommitted(figure func(Phase) float64) func(Phase) float64 {
	return func(p Phase) float64 { return over(figure(p), float64(p.Messages)) }
}

// PerPublished divides a figure by the confirmed messages.
func PerPublished(figure func(Phase) float64) func(Phase) float64 {
	return func(p Phase) float64 { return over(figure(p), float64(p.Published)) }
}

// PerSecond divides a figure by the time.
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

// Median is that of a figure over the rounds, 0 if there were none.
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

// over is 0 where there is nothing to divide by: JSON has no infinity.
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

// Base returns the cell that the others vary, and whether it was measured.
func (s *Set) Base() (Cell, bool) {
	base := s.In(Base)
	if len(base) == 0 {
		return Cell{}, false
	}
	return base[0], true
}
