package planted_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/test/proof/planted"
)

// TestHistoryFindsMutants checks that the history tests, which know only what was written and what
// arrived, detect bugs in the store's reader: they test the product's reader, not only its rule.
func TestHistoryFindsMutants(t *testing.T) {
	need.Long(t, "builds and runs the history tests once for each mutant")
	for _, id := range []string{"M01", "M07", "M08", "M15"} { // floor too early, hi too low, scan cut by rows, starts ignored
		t.Run(id, func(t *testing.T) {
			mutants := planted.Mutants()
			i := slices.IndexFunc(mutants, func(b planted.Bug) bool { return b.ID == id })
			overlay, err := mutants[i].Overlay(root, t.TempDir(), nil)
			if err != nil {
				t.Fatal(err)
			}
			overlay, err = filepath.Abs(overlay)
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "go", "test", "-overlay", overlay, "-count=1", "-run", "^TestHistory(OfFew)?$", ".")
			cmd.Dir = filepath.Join(root, "test", "e2e")
			cmd.Env = append(os.Environ(), "POSTRIDER_LONG=", "POSTRIDER_ALONE=")
			out, err := cmd.CombinedOutput()
			if err == nil || !bytes.Contains(out, []byte("the histories differ")) && !bytes.Contains(out, []byte("a duplicate that no fault explains")) {
				t.Errorf("%s was not found: %v\n%s", mutants[i].Name, err, out)
			}
		})
	}
}
