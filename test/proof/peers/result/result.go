// Package result stores the measurements of the trials: one line of JSON for the machine, for each
// peer, and for each cell of each repetition. All tables and plots are generated from these lines
// alone.
package result

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/postrider/postrider/test/proof/peers/peer"
)

// Works are the measurements, in the order of the tables.
const (
	Bare          = "bare"           // producers that write only their business row
	Alone         = "alone"          // producers that enqueue, without a relay
	Latency       = "latency"        // a steady rate
	Sustained     = "sustained"      // producers at full speed, and the relay
	Drain         = "drain"          // a backlog, without producers
	HeldLatency   = "held-latency"   // a steady rate beside an old open transaction
	HeldSustained = "held-sustained" // full speed beside an old open transaction
	Order         = "order"          // writers that lock keys, pause and roll back
)

// Machine describes where and how a run was made.
type Machine struct {
	At         time.Time         `json:"at"`
	Commit     string            `json:"commit,omitempty"`
	CPUs       int               `json:"cpus"`
	CPU        string            `json:"cpu"`
	MemoryMB   int64             `json:"memory_mb"`
	Kernel     string            `json:"kernel"`
	Go         string            `json:"go"`
	PostgreSQL string            `json:"postgresql"`
	Server     map[string]string `json:"server_settings"`
	Options    any               `json:"options"`
}

// Peer is one system with its setup.
type Peer struct {
	Name     string         `json:"name"`
	Version  string         `json:"version"`
	Stock    bool           `json:"stock,omitempty"`
	Settings []peer.Setting `json:"settings"`
}

// Cell is one measurement.
type Cell struct {
	Repetition int       `json:"repetition"`
	At         time.Time `json:"at"`
	Peer       string    `json:"peer"`
	Stock      bool      `json:"stock,omitempty"`
	Broker     string    `json:"broker,omitempty"`
	Work       string    `json:"work"`
	Error      string    `json:"error,omitempty"`

	Seconds            float64 `json:"seconds"`
	Committed          int64   `json:"committed"`
	Delivered          int64   `json:"delivered"`
	CommittedPerSecond float64 `json:"committed_per_second"`
	DeliveredPerSecond float64 `json:"delivered_per_second"`

	// From the return of COMMIT to the arrival at a consumer. Messages that had not arrived at the
	// end, as many as Waiting says, count with the time that they had waited.
	P50     float64 `json:"p50_ms,omitempty"`
	P99     float64 `json:"p99_ms,omitempty"`
	Max     float64 `json:"max_ms,omitempty"`
	Waiting int64   `json:"waiting,omitempty"`
	Held    float64 `json:"held_seconds,omitempty"` // final age of the old transaction

	RelayCPU       float64 `json:"relay_cpu_seconds"`
	DatabaseCPU    float64 `json:"database_cpu_seconds"` // of all sessions except the producers'
	ProducersCPU   float64 `json:"producers_sessions_cpu_seconds"`
	RelayMemory    int64   `json:"relay_peak_bytes"`
	DatabaseMemory int64   `json:"database_memory_bytes"` // private memory of the relay's sessions
	WAL            int64   `json:"wal_bytes"`
	Size           int64   `json:"database_bytes"`

	Relays     int   `json:"relays,omitempty"`
	Keys       int   `json:"keys,omitempty"`
	Inversions int64 `json:"inversions"`
	Lost       int64 `json:"lost"`
	Duplicates int64 `json:"duplicates"`
	Phantoms   int64 `json:"phantoms"` // of transactions that were rolled back
}

// Line is one line of a file; exactly one of its members is set.
type Line struct {
	Machine *Machine `json:"machine,omitempty"`
	Peer    *Peer    `json:"peer,omitempty"`
	Cell    *Cell    `json:"cell,omitempty"`
}

// Write appends a line.
func Write(w io.Writer, l Line) error { return json.NewEncoder(w).Encode(l) }

// Run has all measurements.
type Run struct {
	Machines []Machine
	Peers    []Peer // each setup once, in the order of its first line
	Cells    []Cell
}

// Read reads files of lines, one after the other.
func Read(files ...string) (*Run, error) {
	run := new(Run)
	for _, name := range files {
		if err := run.read(name); err != nil {
			return nil, fmt.Errorf("result: %s: %w", name, err)
		}
	}
	if len(run.Cells) == 0 {
		return nil, errors.New("result: nothing was measured")
	}
	return run, nil
}

func (r *Run) read(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var l Line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return err
		}
		switch {
		case l.Machine != nil:
			r.Machines = append(r.Machines, *l.Machine)
		case l.Peer != nil:
			r.addPeer(*l.Peer)
		case l.Cell != nil:
			r.Cells = append(r.Cells, *l.Cell)
		}
	}
	return lines.Err()
}

func (r *Run) addPeer(p Peer) {
	for _, known := range r.Peers {
		if known.Name == p.Name && known.Stock == p.Stock && known.Version == p.Version {
			return
		}
	}
	r.Peers = append(r.Peers, p)
}
