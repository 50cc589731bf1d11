package model_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// spec is a specification, with the table in its first comment.
type spec struct {
	name    string
	what    string // the first sentence of its first comment
	entries []entry
}

// entry is a line of the table.
type entry struct {
	kind      string // check, nightly, revert or probe
	name      string
	invariant string            // of a revert
	states    string            // of a check
	constants map[string]string // that differ from the .cfg
	text      string
}

var (
	sentence = regexp.MustCompile(`(?s)^-+ MODULE \w+ -+\n(.*?[.:])(?:\s)`)
	row      = regexp.MustCompile(`^(check|nightly|revert|probe) `)
	rows     = map[string]*regexp.Regexp{ // name, states or invariant, constants, text
		"check":   regexp.MustCompile(`^check +(\w+) +(\d+)(?: +\[(.*)\])?()$`),
		"nightly": regexp.MustCompile(`^nightly +(\w+) +(\d+)(?: +\[(.*)\])?()$`),
		"revert":  regexp.MustCompile(`^revert +(\w+) +(\w+)(?: +\[(.*)\])? +(\S.*)$`),
		"probe":   regexp.MustCompile(`^probe +(\w+)()(?: +\[(.*)\])? +(\S.*)$`),
	}
)

// specs reads all specifications in the folder.
func specs(t *testing.T) []spec {
	t.Helper()
	files, err := filepath.Glob("*.tla")
	if err != nil || len(files) == 0 {
		t.Fatal("no specifications", err)
	}
	var all []spec
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s, err := parse(strings.TrimSuffix(file, ".tla"), string(text))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

func parse(name, text string) (spec, error) {
	s := spec{name: name}
	if found := sentence.FindStringSubmatch(text); found != nil {
		s.what = strings.Join(strings.FieldsFunc(found[1], func(r rune) bool { return strings.ContainsRune("(*) \n", r) }), " ")
	}
	for text := range strings.Lines(text) {
		text = strings.TrimRight(text, "\n")
		kind := row.FindStringSubmatch(text)
		if kind == nil {
			continue
		}
		found := rows[kind[1]].FindStringSubmatch(text)
		if found == nil {
			return s, fmt.Errorf("%s.tla: not a line of its table: %s", name, text)
		}
		e := entry{kind: kind[1], name: found[1], text: found[4], constants: make(map[string]string)}
		for _, c := range strings.Fields(found[3]) {
			key, value, ok := strings.Cut(c, "=")
			if !ok {
				return s, fmt.Errorf("%s.tla: %s: not a constant: %s", name, e.name, c)
			}
			e.constants[key] = value
		}
		switch e.kind {
		case "revert":
			e.invariant, e.constants["Variant"] = found[2], `"`+e.name+`"`
		case "probe":
			e.invariant = e.name
		default:
			e.states = found[2]
		}
		s.entries = append(s.entries, e)
	}
	return s, nil
}

// configure returns the configuration for an entry, based on the specification's .cfg.
func (e *entry) configure(cfg string) (string, error) {
	for key, value := range e.constants {
		setting := regexp.MustCompile(`(?m)^  ` + key + ` = .*$`)
		if !setting.MatchString(cfg) {
			return "", fmt.Errorf("%s: the .cfg has no constant %s", e.name, key)
		}
		cfg = setting.ReplaceAllLiteralString(cfg, "  "+key+" = "+value)
	}
	if e.kind == "probe" {
		cfg = regexp.MustCompile(`(?m)^INVARIANTS .*$`).ReplaceAllLiteralString(cfg, "INVARIANTS "+e.name)
	}
	return cfg, nil
}

// Every specification has checks, reverts and probes, without which its result would prove little.
func TestTables(t *testing.T) {
	reverts := 0
	for _, s := range specs(t) {
		has := make(map[string]int)
		for _, e := range s.entries {
			has[e.kind]++
		}
		if has["check"] == 0 || has["revert"] == 0 || has["probe"] == 0 || s.what == "" {
			t.Errorf("%s: %v, %q: want a sentence, and at least one check, revert and probe", s.name, has, s.what)
		}
		reverts += has["revert"]
	}
	if reverts < 12 {
		t.Errorf("%d reverts in all specifications, want 12", reverts)
	}
	for _, wrong := range []string{"revert A B", "check A [b=c]", "probe A", "revert A B [x]  text"} {
		if _, err := parse("wrong", wrong+"\n"); err == nil {
			t.Errorf("%q was taken for a line of a table", wrong)
		}
	}
}
