package model_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables of docs/reliability/model.md again")

const page = "../../../docs/reliability/model.md"

// TestPage compares the tables on the page with those of the specifications.
func TestPage(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want := string(text)
	for _, s := range specs(t) {
		region := regexp.MustCompile(`(?s)(<!-- table: ` + s.name + ` -->\n).*?(<!-- end -->)`)
		if !region.MatchString(want) {
			t.Fatalf("the page has no place for the tables of %s", s.name)
		}
		want = region.ReplaceAllString(want, "${1}\n"+strings.ReplaceAll(s.tables(), "$", "$$")+"\n${2}")
	}
	if want == string(text) {
		return
	}
	if !*update {
		t.Fatalf("%s does not say what the specifications say: go test -run TestPage ./model -update", page)
	}
	if err := os.WriteFile(page, []byte(want), 0o644); err != nil { //nolint:gosec // a public page
		t.Fatal(err)
	}
}

// tables formats the tables of a specification for readers.
func (s *spec) tables() string {
	var checks, reverts, probes strings.Builder
	for _, e := range s.entries {
		switch e.kind {
		case "check":
			fmt.Fprintf(&checks, "| %s | %s | always |\n", e.name, grouped(e.states))
		case "nightly":
			fmt.Fprintf(&checks, "| %s, larger | %s | `POSTRIDER_LONG=1` |\n", e.name, grouped(e.states))
		case "revert":
			fmt.Fprintf(&reverts, "| `%s` | %s | `%s` |\n", e.name, e.text, e.invariant)
		case "probe":
			fmt.Fprintf(&probes, "| `%s` | %s |\n", e.name, e.text)
		}
	}
	return "| checked with | states | when |\n|---|---:|---|\n" + checks.String() +
		"\n| mistake | what is changed | what breaks |\n|---|---|---|\n" + reverts.String() +
		"\n| reached | the state |\n|---|---|\n" + probes.String()
}

// grouped formats a number with commas.
func grouped(digits string) string {
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
