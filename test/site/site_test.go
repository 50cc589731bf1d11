package site_test

import (
	"io/fs"
	"os"
	"os/exec"
	"testing"
)

const root = "../.."

func TestMarkdown(t *testing.T) {
	t.Parallel()
	for _, problem := range checkMarkdown(os.DirFS(root)) {
		t.Error(problem)
	}
}

// TestSite builds the site as make docs does. Hugo itself rejects pages that are missing from the
// navigation.
func TestSite(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("hugo"); err != nil {
		t.Fatal("hugo is missing; run: dev/services install hugo")
	}
	built := t.TempDir()
	hugo := exec.Command("hugo", "--source", root+"/docs/site", "--destination", built)
	hugo.Env = append(os.Environ(), "HUGO_RESOURCEDIR="+t.TempDir())
	if out, err := hugo.CombinedOutput(); err != nil {
		t.Fatalf("hugo: %v\n%s", err, out)
	}
	for _, problem := range checkSite(os.DirFS(built), os.DirFS(root)) {
		t.Error(problem)
	}
	if pages, err := fs.Glob(os.DirFS(built), "*.html"); err != nil || len(pages) < 10 {
		t.Errorf("only %d pages at the top of the site (%v)", len(pages), err)
	}
	checkInBrowser(t, built)
}
