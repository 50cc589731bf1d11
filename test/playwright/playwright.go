// Package playwright installs the dependencies of tests that run in a browser.
package playwright

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Install installs what the package.json of a folder lists, if it is missing.
func Install(t testing.TB, folder string) {
	t.Helper()
	if _, err := exec.LookPath("npm"); err != nil {
		t.Fatal("npm is missing: these tests run in a browser, and Playwright needs it")
	}
	if _, err := os.Stat(filepath.Join(folder, "node_modules/@playwright/test")); err == nil {
		return
	}
	cmd := exec.Command("npm", "ci", "--no-fund", "--no-audit")
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
}
