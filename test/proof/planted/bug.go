// Package planted puts known bugs into Postrider, one at a time, to see whether the tests notice.
//
// A bug is a few texts of our own sources and what stands there instead. Nothing of it is in the program: it is built with
// go build -overlay, from the sources as they are. A text that does not stand in its file exactly once any more is an error, so that a bug
// is not forgotten when the code it is about changes.
//
// The bugs F01 and so on are those that outboxes of others have had, named as in the catalogue they come from. Where our design has no place for
// one as it stands there, it is what comes closest: the comment at each says what that is. Those from P01 on were our own.
package planted

import (
	"fmt"
	"slices"
	"strings"
)

// Bug is a known bug, and how it is found.
type Bug struct {
	ID   string // in the catalogue
	Name string
	// Does says what goes wrong.
	Does string
	// Breaks are the invariants of the fault campaign of which one must be found broken, the most telling first.
	Breaks []string
	// Hunt is the campaign that brings it out; without destinations there is none, and tests find it.
	Hunt Hunt
	// Tests are others that fail with it.
	Tests []Test
	Plant []Change
}

// Hunt is a short fault campaign.
type Hunt struct {
	To      []string // destinations
	Only    []string // kinds of faults
	Minutes float64
	Rate    int // messages a second, about
	Calls   int // of clients a second and process; 0: a few
	Faults  int
}

// Test is a test that fails with a bug.
type Test struct {
	Package string // its folder
	Run     string // as of go test
}

// Change is a text that stands once in a file, and what stands there instead.
type Change struct {
	File     string // seen from the root of the repository
	Old, New string
}

// All returns all bugs, in the order of their IDs.
func All() []Bug { return slices.Concat(capture, delivery, broker, consumer, own) }

// Flags are those of campaign run.
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

// String is the campaign in words.
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
