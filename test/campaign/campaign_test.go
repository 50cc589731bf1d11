package campaign_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/postrider/postrider/store/postgres/pgtest"
)

// seed decides what happens when, so that a change that breaks something is found by the run that follows it. Other seeds are for make campaign.
const seed = "11"

// TestCampaign runs three minutes of faults, and fails on any broken invariant. The files of a run that fails are kept.
func TestCampaign(t *testing.T) {
	pgtest.Env(t, "POSTRIDER_SERVICES")
	bin := t.TempDir()
	build(t, bin, "campaign", "./cmd/campaign")
	build(t, bin, "postrider", "../../cmd/postrider")
	versions := []string{"15"}
	if os.Getenv("POSTRIDER_LONG") != "" {
		versions = append(versions, "18")
	}
	for _, version := range versions {
		t.Run("pg"+version, func(t *testing.T) { run(t, bin, version) })
	}
}

func build(t *testing.T, bin, name, path string) {
	t.Helper()
	cmd := exec.Command("go", "build", "-o", filepath.Join(bin, name), ".")
	cmd.Dir = path
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", name, err, out)
	}
}

func run(t *testing.T, bin, version string) {
	dir, err := os.MkdirTemp("", "postrider-campaign-")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 12*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "campaign"), "run", "--minutes", "3", "--faults", "20", "--seed", seed,
		"--postgres", version, "--rate", "300", "--instance", "test", "--dir", filepath.Join(dir, "run"))
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) } // it ends in order, with a verdict
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
