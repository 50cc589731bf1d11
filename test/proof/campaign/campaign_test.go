package campaign_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/store/postgres/pgtest"
	"github.com/postrider/postrider/test/built"
)

// seed is fixed, so that the first run after a breaking change detects it. Use make campaign for
// other seeds.
const seed = "11"

// TestCampaign runs a minute of faults, or three in the long tier, and fails on any broken
// invariant. The files of a failed run are kept.
func TestCampaign(t *testing.T) {
	need.Alone(t, "has servers of its own, and judges how soon they recover")
	pgtest.Env(t, "POSTRIDER_SERVICES")
	campaign := built.Program(t, "test/proof/campaign/cmd/campaign")
	built.Program(t, "cmd/postrider") // campaign looks for it in its own folder
	versions := []string{"15"}
	if need.IsLong() {
		versions = append(versions, "18")
	}
	for _, version := range versions {
		t.Run("pg"+version, func(t *testing.T) { run(t, campaign, version) })
	}
}

func run(t *testing.T, campaign, version string) {
	dir, err := os.MkdirTemp("", "postrider-campaign-") //nolint:usetesting // the files of a failed run are kept
	if err != nil {
		t.Fatal(err)
	}
	minutes, faults, rate := "1.2", "9", "150" // a rate that a busy machine keeps up with: every run gets to its faults
	if need.IsLong() {
		minutes, faults, rate = "3", "20", "300"
	}
	ctx, cancel := context.WithTimeout(t.Context(), 12*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, campaign, "run", "--minutes", minutes, "--faults", faults, "--seed", seed,
		"--postgres", version, "--rate", rate, "--instance", "test", "--dir", filepath.Join(dir, "run"))
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) } // it shuts down in order, with a verdict
	cmd.WaitDelay = 5 * time.Minute
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("seed %s: %v; the files are in %s\n%s", seed, err, dir, out)
	}
	t.Logf("seed %s\n%s", seed, out)
	if err := os.RemoveAll(dir); err != nil {
		t.Error(err)
	}
}
