package record

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"time"
)

// Run is run.json: what was run, and what the other files do not show.
type Run struct {
	ID       string            `json:"id"`
	Seed     int64             `json:"seed"`
	Commit   string            `json:"commit"`
	Dirty    bool              `json:"dirty,omitempty"` // with uncommitted changes
	Begin    time.Time         `json:"begin"`
	End      time.Time         `json:"end,omitzero"`    // zero: the run was cut short
	Healed   time.Time         `json:"healed,omitzero"` // heal of the last fault and begin of the final drain
	Versions map[string]string `json:"versions,omitempty"`
	Flags    map[string]string `json:"flags,omitempty"`

	// Consumers are the inbox consumers of each destination. Each must process every message of it
	// once. A missing destination has none.
	Consumers map[string][]string `json:"consumers,omitempty"`
	// Attempts is how often relays try a message that is refused before they give it up.
	Attempts int `json:"attempts,omitempty"`
	// Once are the destinations that relays ask what has arrived: nothing comes twice there.
	Once []string `json:"once,omitempty"`
	// Tallies are the product's own counts at the end, by destination.
	Tallies map[string]Tally `json:"tallies,omitempty"`
	// Counts are numbers to print, such as rolled-back transactions.
	Counts map[string]int64 `json:"counts,omitempty"`
	// Hashes are the SHA-256 of the other files, by name. Writer.Close fills them in.
	Hashes map[string]string `json:"hashes,omitempty"`
}

// Tally is the number of messages of a destination that the product reports, by outcome.
type Tally struct {
	Inserted  int64 `json:"inserted"`
	Pending   int64 `json:"pending"`
	Sent      int64 `json:"sent"`
	Parked    int64 `json:"parked"` // deferred: dead, or blocked behind a dead one
	Discarded int64 `json:"discarded"`
}

const runFile = "run.json"

// WriteJSON writes a value as an indented file, atomically.
func WriteJSON(path string, value any) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if _, err = f.Write(text.Bytes()); err == nil {
		err = f.Chmod(0o644)
	}
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
