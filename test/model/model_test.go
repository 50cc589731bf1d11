package model_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider/internal/docpage"
)

var update = flag.Bool("update", false, "write the tables in docs/reliability/model.md anew")

// TestModel has every specification checked as its table says.
func TestModel(t *testing.T) {
	mustBeLong(t)
	jar := jar(t)
	for _, s := range specs(t) {
		cfg, err := os.ReadFile(s.name + ".cfg")
		if err != nil {
			t.Fatal(err)
		}
		t.Run(s.name, func(t *testing.T) {
			for _, e := range s.entries {
				if e.kind == "nightly" && os.Getenv("POSTRIDER_LONG") == "" {
					continue
				}
				config, err := e.configure(string(cfg))
				if err != nil {
					t.Fatal(err)
				}
				t.Run(e.kind+" "+e.name, func(t *testing.T) {
					t.Parallel()
					o := check(t, jar, s.name, config)
					t.Logf("%s states, %v", o.states, o.took.Round(100*time.Millisecond))
					switch {
					case e.invariant != o.broken:
						t.Errorf("%q is broken, want %q\n%s", o.broken, e.invariant, o.said)
					case e.states != "" && e.states != o.states:
						t.Errorf("there are %s states, the table says %s: if the specification was meant to change, so must the table", o.states, e.states)
					}
				})
			}
		})
	}
}

// TestPage keeps the tables of the page as the specifications say.
func TestPage(t *testing.T) {
	mustBeLong(t)
	var checks, reverts, probes strings.Builder
	for _, s := range specs(t) {
		for _, e := range s.entries {
			text := docpage.Cell(e.text)
			switch e.kind {
			case "revert":
				fmt.Fprintf(&reverts, "| `%s` | `%s` | %s | `%s` |\n", s.name, e.name, text, e.invariant)
			case "probe":
				fmt.Fprintf(&probes, "| `%s` | `%s` | %s |\n", s.name, e.name, text)
			default:
				fmt.Fprintf(&checks, "| `%s` | %s | %s | %s |\n", s.name, e.name, e.kind, e.states)
			}
		}
	}
	docpage.Check(t, *update, "../../docs/reliability/model.md", "TestPage, in test/model", fmt.Sprintf(`
| specification | states with | run | different states |
|---|---|---|---|
%s
| specification | wrong variant | what is wrong | what breaks |
|---|---|---|---|
%s
| specification | state that is reached | what it is |
|---|---|---|
%s`, checks.String(), reverts.String(), probes.String()))
}

func mustBeLong(t *testing.T) {
	t.Helper()
	if os.Getenv("POSTRIDER_LONG") == "" {
		t.Skip("not part of CI yet: set POSTRIDER_LONG")
	}
}
