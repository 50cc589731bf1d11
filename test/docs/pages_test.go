package docs

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write regions of sources into the pages that show them")

const top = "../.."

// checkers check blocks by language. Languages with nil are not checked.
var checkers = map[string]func(t *testing.T, b block) error{
	"go": excerpt, "python": excerpt, "typescript": excerpt, "java": excerpt,
	"sh": shell, "console": console, "sql": query, "yaml": yamlFile, "json": jsonText,
	"text": plain, "nginx": nil, "dockerfile": nil, "ini": nil, "xml": nil, "toml": nil, "properties": nil, "mermaid": nil, "diff": nil,
	"mysql": nil,
}

// check checks a block.
func check(t *testing.T, b block) error {
	t.Helper()
	if name, ok := b.notes["snippet"]; ok {
		if err := sameAsRegion(b, name); err != nil {
			return err
		}
	}
	checker, known := checkers[b.language]
	if !known {
		return fmt.Errorf("nothing checks the language %q: CONTRIBUTING.md lists those that are known", b.language)
	}
	if checker == nil {
		return nil
	}
	return checker(t, b)
}

// TestPages checks every code block of every page.
func TestPages(t *testing.T) {
	openDatabase(t)
	all := 0
	for _, page := range pages(t) {
		text, err := os.ReadFile(filepath.Join(top, page))
		if err != nil {
			t.Fatal(err)
		}
		found, mistakes := blocks(page, string(text))
		all += len(found)
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			for _, err := range mistakes {
				t.Error(err)
			}
			if *update {
				writeRegions(t, page, string(text), found)
				return
			}
			for _, b := range found {
				if err := check(t, b); err != nil {
					t.Errorf("%v: %v", b, err)
				}
			}
		})
	}
	if all < 200 {
		t.Errorf("only %d blocks", all)
	}
}

var disguised = regexp.MustCompile(`(?m)^(\$|SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|GRANT|func|import) `)

// plain returns an error if a block without a checker contains something that could be checked.
func plain(_ *testing.T, b block) error {
	if m := disguised.FindString(b.text); m != "" {
		return fmt.Errorf("is not plain text: a line begins with %q. Transcripts are console; or is it sql, or go?", m)
	}
	return nil
}

// pages returns the Markdown pages of the repository.
func pages(t *testing.T) []string {
	t.Helper()
	var found []string
	files(t, top, func(path string) {
		if strings.HasSuffix(path, ".md") {
			found = append(found, path)
		}
	})
	if len(found) < 30 {
		t.Fatalf("only %d pages", len(found))
	}
	return found
}

// files calls f with the path, relative to the root of the repository, of every file that was not
// generated.
func files(t *testing.T, root string, f func(path string)) {
	t.Helper()
	foreign := []string{"node_modules", "testdata", "vendor", "dist", "public", "resources", "themes", "venv", "target", "bin", "__pycache__"}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || slices.Contains(foreign, d.Name())):
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		path, err = filepath.Rel(top, path)
		f(filepath.ToSlash(path))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
