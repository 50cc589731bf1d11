package planted_test

import (
	"os/exec"
	"testing"

	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/test/proof/planted"
)

const root = "../../.."

// TestBugsFit holds that every bug can be planted into the sources as they are now, and, in its long form, that what comes of it can be
// built.
func TestBugsFit(t *testing.T) {
	bugs, mutants := planted.All(), planted.Mutants()
	if len(bugs) != 20 || len(mutants) != 74 {
		t.Errorf("there are %d bugs and %d mutants, want 20 and 74", len(bugs), len(mutants))
	}
	for _, b := range append(bugs, mutants...) {
		t.Run(b.ID, func(t *testing.T) {
			if len(b.Hunt.To) == 0 && len(b.Tests) == 0 {
				t.Error("nothing looks for it")
			}
			overlay, err := b.Overlay(root, t.TempDir(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if !need.IsLong() {
				return // what does not compile is found by the first hunt
			}
			build := exec.CommandContext(t.Context(), "go", append([]string{"build", "-overlay", overlay}, b.Packages()...)...)
			build.Dir = root
			if out, err := build.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
