package model_test

import (
	"os"
	"testing"
	"time"

	"github.com/postrider/postrider/internal/need"
)

// TestModel checks every specification according to its table.
func TestModel(t *testing.T) {
	jar := jar(t)
	for _, s := range specs(t) {
		cfg, err := os.ReadFile(s.name + ".cfg")
		if err != nil {
			t.Fatal(err)
		}
		t.Run(s.name, func(t *testing.T) {
			for _, e := range s.entries {
				if e.kind == "nightly" && !need.IsLong() {
					continue
				}
				config, err := e.configure(string(cfg))
				if err != nil {
					t.Fatal(err)
				}
				t.Run(e.kind+" "+e.name, func(t *testing.T) {
					t.Parallel()
					o := check(t, jar, s.name, config, e.kind != "nightly")
					t.Logf("%s states, %v of processor time", o.states, o.took.Round(100*time.Millisecond))
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
