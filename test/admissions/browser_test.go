package admissions

import (
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/test/playwright"
)

// TestBrowser submits applications in a real browser. It stores screenshots in the folder
// POSTRIDER_ARTIFACTS, by default browser/artifacts; UPDATE_SCREENSHOTS=1 updates docs/admissions.
// BROWSER_TESTS has arguments for Playwright.
func TestBrowser(t *testing.T) {
	need.Alone(t, "a browser waits for some seconds only")
	playwright.Install(t, "browser")
	s := newStage(t, "rabbitmq")
	artifacts, err := filepath.Abs(cmp.Or(os.Getenv("POSTRIDER_ARTIFACTS"), "browser/artifacts"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]string{
		"pages": "http://" + s.Pages + "/", "paydesk": "http://" + s.Paydesk + "/", "console": "http://" + s.Console + "/",
		"artifacts": artifacts,
	})
	if err != nil {
		t.Fatal(err)
	}
	scene := filepath.Join(t.TempDir(), "scene.json")
	if err := os.WriteFile(scene, text, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"playwright", "test"}
	if more := os.Getenv("BROWSER_TESTS"); more != "" {
		args = append(args, more)
	}
	cmd := exec.CommandContext(t.Context(), "npx", args...)
	cmd.Dir = "browser"
	cmd.Env = append(os.Environ(), "ADMISSIONS_SCENE="+scene, "ADMISSIONS_OUTPUT="+t.TempDir())
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	if err := cmd.Run(); err != nil {
		t.Errorf("the tests of the browser: %v", err)
	}
}
