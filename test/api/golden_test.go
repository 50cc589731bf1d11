package api

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the listings below docs/api")

const listings = "../../docs/api"

// golden compares lines with a committed listing, or rewrites it.
func golden(t *testing.T, name string, lines []string) {
	t.Helper()
	file := filepath.Join(listings, name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; to write it, in test: go test ./api -update", err)
	}
	for _, problem := range compare(strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"), lines) {
		t.Errorf("%s: %s", name, problem)
	}
	if t.Failed() {
		t.Log("if that is intended: a line in CHANGELOG.md, and in test: go test ./api -update. docs/compatibility.md says what may change.")
	}
}

// compare returns a sentence for each line that only one of the listings has.
func compare(before, now []string) (problems []string) {
	for _, line := range before {
		if !slices.Contains(now, line) {
			problems = append(problems, "removed or changed, which breaks users: "+line)
		}
	}
	for _, line := range now {
		if !slices.Contains(before, line) {
			problems = append(problems, "new: "+line)
		}
	}
	return problems
}

func TestCompare(t *testing.T) {
	before := []string{"func A()", "func B(int)"}
	got := compare(before, []string{"func A()", "func B(string)"})
	want := []string{"removed or changed, which breaks users: func B(int)", "new: func B(string)"}
	if !slices.Equal(got, want) {
		t.Errorf("have %q, want %q", got, want)
	}
	if got := compare(before, before); got != nil {
		t.Errorf("equal listings: %q", got)
	}
}
