package rule

import (
	_ "embed"
	"fmt"
	"strings"
)

// survivors lists mutants that no user can notice. Each has three lines: the name; what it was and
// is; the reason. Empty lines and those that begin with # are ignored.
//
//go:embed survivors.txt
var survivors string

// Known is a mutant that survives for a reason.
type Known struct{ Name, Change, Reason string }

// Survivors returns the mutants that are known to survive, by name.
func Survivors() (map[string]Known, error) { return parseKnown(survivors) }

func parseKnown(text string) (map[string]Known, error) {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	known := make(map[string]Known)
	for ; len(lines) >= 3; lines = lines[3:] {
		k := Known{lines[0], lines[1], lines[2]}
		if _, twice := known[k.Name]; twice {
			return nil, fmt.Errorf("survivors.txt: %s is there twice", k.Name)
		}
		known[k.Name] = k
	}
	if len(lines) > 0 {
		return nil, fmt.Errorf("survivors.txt: %s has no change or no reason", lines[0])
	}
	return known, nil
}

// Check returns an error if an entry has no mutant, or its mutant is another one by now.
func Check(known map[string]Known, all []Mutant) error {
	changes := make(map[string]string)
	for _, m := range all {
		changes[m.Name] = m.String()
	}
	for _, k := range known {
		if changes[k.Name] != k.Change {
			return fmt.Errorf("survivors.txt: %s is %q, not %q: is the reason still right?", k.Name, changes[k.Name], k.Change)
		}
	}
	return nil
}
