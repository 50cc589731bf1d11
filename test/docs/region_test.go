package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sameAsRegion returns an error if a block differs from the part of a source that it shows, such as
// "examples/pgx/main.go#write".
func sameAsRegion(b block, name string) error {
	want, err := region(name)
	if err == nil && b.text != want {
		err = fmt.Errorf("differs from %s, which is below; in the folder test: go test ./docs -update\n%s", name, want)
	}
	return err
}

// writeRegions updates the blocks of a page from the sources that they show.
func writeRegions(t *testing.T, page, text string, found []block) {
	t.Helper()
	lines := strings.Split(text, "\n")
	for _, b := range slices.Backward(found) { // from the end, so that line numbers stay valid
		name, ok := b.notes["snippet"]
		if !ok {
			continue
		}
		want, err := region(name)
		if err != nil {
			t.Errorf("%v: %v", b, err)
		} else {
			lines = slices.Replace(lines, b.line-1, b.end-1, strings.Split(strings.TrimSuffix(want, "\n"), "\n")...)
		}
	}
	if changed := strings.Join(lines, "\n"); changed != text {
		if err := os.WriteFile(filepath.Join(top, page), []byte(changed), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

var marker = regexp.MustCompile(`^\s*(?://|#|--) ?docs:(begin|end|skip|resume)(?: (.*))?$`)

// region returns the part of a source that pages show: without markers, unindented, and with an
// empty line between parts of the same name. Skipped lines are shown as "…", with the text of the
// marker.
func region(name string) (string, error) {
	path, wanted, _ := strings.Cut(name, "#")
	source, err := os.ReadFile(filepath.Join(top, filepath.FromSlash(path)))
	if err != nil {
		return "", err
	}
	var pieces, piece []string
	inside, skipped := wanted == "", false
	for line := range strings.Lines(string(source)) {
		line = strings.TrimSuffix(line, "\n")
		m := marker.FindStringSubmatch(line)
		switch {
		case m == nil && inside && !skipped:
			piece = append(piece, line)
		case m == nil:
		case m[1] == "begin" && m[2] == wanted:
			inside, piece = true, nil
		case m[1] == "end" && inside && wanted != "":
			inside = false
			pieces = append(pieces, unindent(piece))
		case m[1] == "skip":
			skipped = true
			if inside && m[2] != "" {
				m[2] = " // " + m[2]
			}
			if inside {
				piece = append(piece, line[:strings.IndexAny(line, "/#-")]+"…"+m[2])
			}
		case m[1] == "resume":
			skipped = false
		}
	}
	if wanted == "" {
		pieces = []string{unindent(piece)}
	}
	if len(pieces) == 0 || inside && wanted != "" {
		return "", fmt.Errorf("%s has no region %q, or no end of it", path, wanted)
	}
	return strings.Join(pieces, "\n"), nil
}

// unindent removes empty lines at both ends, and the common indentation.
func unindent(lines []string) string {
	text := strings.Trim(strings.Join(lines, "\n"), "\n")
	common := text[:len(text)-len(strings.TrimLeft(text, " \t"))]
	for line := range strings.Lines(text) {
		for line != "\n" && !strings.HasPrefix(line, common) {
			common = common[:len(common)-1]
		}
	}
	if common != "" {
		text = strings.ReplaceAll("\n"+text, "\n"+common, "\n")[1:]
	}
	return text + "\n"
}
