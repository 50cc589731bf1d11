package planted_test

import (
	"os/exec"
	"testing"

	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/test/proof/planted"
)

const root = "../../.."

// TestBugsFit checks that every bug can be inserted into the current sources and, in the long tier,
// that the result compiles.
func TestBugsFit(t *testing.T) {
	bugs, mutants := planted.All(), planted.Mutants()
	if len(bugs) != 20 || len(mutants) != 114 {
		t.Errorf("there are %d bugs and %d mutants, want 20 and 114", len(bugs), len(mutants))
	}
	known := map[string]bool{}
	for _, b := range append(bugs, mutants...) {
		t.Run(b.ID, func(t *testing.T) {
			if known[b.ID] {
				t.Error("another one has this ID, so that this one cannot be chosen")
			}
			known[b.ID] = true
			if len(b.Hunt.To) == 0 && len(b.Tests) == 0 {
				t.Error("nothing looks for it")
			}
			overlay, err := b.Overlay(root, t.TempDir(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if !need.IsLong() {
				return // a hunt would detect what does not compile
			}
			build := exec.CommandContext(t.Context(), "go", append([]string{"build", "-overlay", overlay}, b.Packages()...)...)
			build.Dir = root
			if out, err := build.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
