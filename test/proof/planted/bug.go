// Package planted inserts known bugs into Postrider, one at a time, to check that the tests detect
// them.
//
// A bug is a set of texts in our own sources and their replacements. The program does not contain
// it: it is built with go build -overlay, from the unmodified sources. A text that does not occur
// in its file exactly once is an error, so that a bug is updated when the code changes.
//
// The bugs F01 and so on are those that other outboxes have had, named as in the catalogue they
// come from. If our design has no equivalent, the bug is the closest one possible: the comment at
// each explains it. Those from P01 on were our own.
package planted

import (
	"fmt"
	"slices"
	"strings"
)

// Bug is a known bug, and how it is detected.
type Bug struct {
	ID   string // in the catalogue
	Name string
	// Does describes the effect.
	Does string
	// Breaks lists invariants of the fault campaign, at least one of which must be reported as
	// broken, the most specific first.
	Breaks []string
	// Hunt is the campaign that reveals the bug; without destinations there is none, and tests
	// detect it.
	Hunt Hunt
	// Tests lists tests that fail with the bug.
	Tests []Test
	Plant []Change
}

// Hunt is a short fault campaign.
type Hunt struct {
	To      []string // destinations
	Only    []string // kinds of faults
	Minutes float64
	Rate    int // approximate messages per second
	Calls   int // of clients per second and process; 0: a few
	Faults  int
}

// Test is a test that fails with a bug.
type Test struct {
	Package string // its folder
	Run     string // for go test -run
}

// Change replaces a text that occurs once in a file.
type Change struct {
	File     string // relative to the root of the repository
	Old, New string
}

// All returns all bugs, sorted by ID.
func All() []Bug { return slices.Concat(capture, delivery, broker, consumer, own) }

// Flags returns the flags of campaign run.
func (h Hunt) Flags() []string {
	flags := []string{"--destinations", strings.Join(h.To, ","), "--minutes", fmt.Sprint(h.Minutes), "--rate", fmt.Sprint(h.Rate),
		"--faults", fmt.Sprint(h.Faults), "--seed", "1"}
	if len(h.Only) > 0 {
		flags = append(flags, "--only", strings.Join(h.Only, ","))
	}
	if h.Calls > 0 {
		flags = append(flags, "--calls", fmt.Sprint(h.Calls))
	}
	return flags
}

// String describes the campaign.
func (h Hunt) String() string {
	what := "no faults"
	if h.Faults > 0 {
		what = fmt.Sprintf("%d faults of %s", h.Faults, strings.Join(h.Only, ", "))
	}
	text := fmt.Sprintf("%s, %g min, %d messages/s to %s", what, h.Minutes, h.Rate, strings.Join(h.To, " and "))
	if h.Calls > 0 {
		text += fmt.Sprintf(", %d calls/s", h.Calls)
	}
	return text
}
