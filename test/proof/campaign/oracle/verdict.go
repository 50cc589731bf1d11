package oracle

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/postrider/postrider/test/proof/campaign/record"
)

// State is the result for an invariant.
type State string

// The states of a finding.
const (
	OK         State = "ok"
	Broken     State = "broken"
	NotChecked State = "not checked"
)

// Finding is the result for one invariant, with its evidence.
type Finding struct {
	ID       string   `json:"id"` // I1 … I15
	Name     string   `json:"name"`
	State    State    `json:"state"`
	Figure   float64  `json:"figure"`
	Budget   string   `json:"budget"`
	Note     string   `json:"note,omitempty"`
	Examples []string `json:"examples,omitempty"` // at most 20
}

// Counts are the sizes of a run.
type Counts struct {
	Minutes    float64 `json:"minutes"`
	Faults     int     `json:"faults"`
	Events     int64   `json:"events"` // committed messages
	Poison     int64   `json:"poison"` // among them, those that destinations must reject
	Keys       int     `json:"keys"`
	Receipts   int64   `json:"receipts"` // entries of destinations, including duplicates
	Effects    int64   `json:"effects"`
	Operations int64   `json:"operations,omitempty"`
	Duplicates int64   `json:"duplicates"` // repeated receipts
	Rereads    int64   `json:"rereads,omitempty"`

	// Of Events and Duplicates, those of destinations that promise that nothing comes twice.
	OnceEvents     int64 `json:"once_events,omitempty"`
	OnceDuplicates int64 `json:"once_duplicates,omitempty"`
}

// Destination is what one destination has received.
type Destination struct {
	Once       bool  `json:"once,omitempty"` // it promises that nothing comes twice
	Events     int64 `json:"events"`
	Duplicates int64 `json:"duplicates"`
	Restored   int64 `json:"restored,omitempty"` // of Duplicates: the database was restored, and had forgotten that they were sent
}

// Recovery is the time from a heal until nothing was pending or the oldest message was younger than
// 2 s.
type Recovery struct {
	Fault   int     `json:"fault"`
	Kind    string  `json:"kind"`
	Seconds float64 `json:"seconds"` // since this fault was healed
	Clear   float64 `json:"clear"`   // the longest part of it without a fault that delays messages
}

// Verdict is the result of checking the files of a run.
type Verdict struct {
	Run         string         `json:"run"`
	Interrupted bool           `json:"interrupted,omitempty"` // the run did not complete
	Findings    []Finding      `json:"findings"`              // I1 … I15
	Counts      Counts         `json:"counts"`
	Faults      map[string]int `json:"faults,omitempty"` // by kind

	Destinations map[string]Destination `json:"destinations,omitempty"`
	Duplicates   map[string]int64       `json:"duplicates,omitempty"` // by the kind of fault that explains them; "" counts unexplained ones
	Recoveries   []Recovery             `json:"recoveries,omitempty"`
	Warnings     []string               `json:"warnings,omitempty"` // doubts about the files themselves
}

// Broken returns the broken findings.
func (v Verdict) Broken() []Finding { return v.in(Broken) }

// NotChecked returns the findings without data in the files.
func (v Verdict) NotChecked() []Finding { return v.in(NotChecked) }

func (v Verdict) in(state State) (found []Finding) {
	for _, f := range v.Findings {
		if f.State == state {
			found = append(found, f)
		}
	}
	return found
}

// Finding returns the finding for an invariant, by its ID.
func (v Verdict) Finding(id string) Finding {
	for _, f := range v.Findings {
		if f.ID == id {
			return f
		}
	}
	return Finding{ID: id, State: NotChecked}
}

// DuplicateShare returns the ratio of duplicates to committed messages, without the destinations
// that promise that nothing comes twice.
func (c Counts) DuplicateShare() float64 {
	if c.repeatable() == 0 {
		return 0
	}
	return float64(c.Duplicates-c.OnceDuplicates) / float64(c.repeatable())
}

// repeatable returns the number of messages that may come twice.
func (c Counts) repeatable() int64 { return c.Events - c.OnceEvents }

// The budget of I6. With few events a single kill dominates the share, so only the number per fault
// is checked.
const (
	duplicateBudget = 0.0005
	enoughEvents    = 500_000
	mostByAFault    = 50 // on average
)

// TooManyDuplicates reports whether there are more duplicates than the budget allows, in one run or
// in the sum of several.
func (c Counts) TooManyDuplicates() bool {
	return c.repeatable() >= enoughEvents && c.DuplicateShare() >= duplicateBudget ||
		c.Duplicates-c.OnceDuplicates > mostByAFault*int64(c.Faults)
}

// TooFewEvents reports whether the share of duplicates exceeds its budget, but there are too few
// events for it to be meaningful.
func (c Counts) TooFewEvents() bool {
	return c.repeatable() < enoughEvents && c.DuplicateShare() >= duplicateBudget
}

// String formats the verdict for a terminal: one line per invariant, and examples of violations.
func (v Verdict) String() string {
	var b strings.Builder
	c := v.Counts
	fmt.Fprintf(&b, "run %s: %.1f minutes, %d faults, %d events, %d receipts (%d duplicates, %.4f %%), %d effects\n",
		v.Run, c.Minutes, c.Faults, c.Events, c.Receipts, c.Duplicates, 100*c.DuplicateShare(), c.Effects)
	for _, f := range v.Findings {
		fmt.Fprintf(&b, "%-4s%-12s%-44s %10s  (%s)", f.ID, f.State, f.Name, figure(f), f.Budget)
		if f.Note != "" {
			fmt.Fprintf(&b, "  %s", f.Note)
		}
		b.WriteByte('\n')
		if f.State == Broken {
			for _, example := range f.Examples {
				fmt.Fprintf(&b, "      %s\n", example)
			}
		}
	}
	for _, warning := range v.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", warning)
	}
	return b.String()
}

func figure(f Finding) string {
	if f.State == NotChecked {
		return "-"
	}
	return fmt.Sprintf("%.4g", f.Figure)
}

// Save writes the verdict beside the files of its run.
func (v Verdict) Save(dir string) error {
	return record.WriteJSON(filepath.Join(dir, record.VerdictFile), v)
}

// Load reads the verdict that was saved last. Check computes a new one.
func Load(dir string) (v Verdict, err error) {
	text, err := os.ReadFile(filepath.Join(dir, record.VerdictFile))
	if err != nil {
		return v, err
	}
	return v, json.Unmarshal(text, &v)
}
