package docs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// homes maps languages to where their sources are compiled or run, and their file extensions.
var homes = map[string]struct{ root, ending string }{
	"go":         {top, ".go"},
	"python":     {top + "/examples", ".py"},
	"typescript": {top + "/examples", ".ts"},
	"java":       {top + "/examples", ".java"},
}

var sources = struct {
	sync.Mutex
	of map[string][]string
}{of: map[string][]string{}}

// excerpt returns an error unless a block occurs verbatim in the sources of its language. "…" marks
// omissions.
func excerpt(t *testing.T, b block) error {
	t.Helper()
	if name, ok := b.notes["snippet"]; ok { // its content is checked there
		path, _, _ := strings.Cut(name, "#")
		if ending := homes[b.language].ending; !strings.HasSuffix(path, ending) {
			return fmt.Errorf("%s is no file of %s", path, b.language)
		}
		return nil
	}
	parts := strings.Split(words(b.text), "…")
	for _, source := range sourcesOf(t, b.language) {
		if contains(source, parts) {
			return nil
		}
	}
	return errors.New("stands in no source that is compiled or run: make it a region of a file below test/docs/snippets or examples")
}

// sourcesOf reads all sources of a language once.
func sourcesOf(t *testing.T, language string) []string {
	t.Helper()
	sources.Lock()
	defer sources.Unlock()
	if all, ok := sources.of[language]; ok {
		return all
	}
	all := []string{}
	files(t, homes[language].root, func(path string) {
		if !strings.HasSuffix(path, homes[language].ending) {
			return
		}
		text, err := os.ReadFile(filepath.Join(top, path))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, words(string(text)))
	})
	sources.of[language] = all
	return all
}

// words normalizes the white space of a text, and removes region markers.
func words(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) > 0 && !marker.MatchString(strings.TrimRight(line, "\n")) {
			lines = append(lines, strings.Join(fields, " "))
		}
	}
	return strings.Join(lines, "\n")
}

// contains reports whether text contains all parts, in order.
func contains(text string, parts []string) bool {
	for _, part := range parts {
		part = strings.TrimSpace(part)
		at := strings.Index(text, part)
		if at < 0 {
			return false
		}
		text = text[at+len(part):]
	}
	return true
}
