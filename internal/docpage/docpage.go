// Package docpage keeps generated parts of pages under docs equal to the code.
package docpage

import (
	"os"
	"strings"
	"testing"
)

const end = "<!-- end of what is generated -->\n"

// Check compares the part of a page that a test generates, or rewrites it if update is set. The
// part begins with a comment that names the test and its folder, such as "TestReference, in
// cmd/postrider".
func Check(t testing.TB, update bool, page, test, want string) {
	t.Helper()
	name, folder, _ := strings.Cut(test, ", in ")
	begin := "<!-- generated: go test -run " + name + " -update, in " + folder + " -->\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	have, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no place for what %s generates: two lines\n%s%s", page, name, begin, end)
	}
	if want = "\n" + strings.TrimSpace(want) + "\n\n"; have == want {
		return
	}
	if !update {
		t.Fatalf("%s differs from the code: first at\n%s\nTo write it, in %s: go test -run %s -update", page, difference(have, want), folder, name)
	}
	if err := os.WriteFile(page, []byte(before+begin+want+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// difference returns the first line that the page lacks, and the line in its place.
func difference(have, want string) string {
	lines := strings.Split(have, "\n")
	i := 0
	for line := range strings.SplitSeq(want, "\n") {
		if i >= len(lines) {
			return "+ " + line
		}
		if lines[i] != line {
			return "- " + lines[i] + "\n+ " + line
		}
		i++
	}
	return "- " + lines[min(i, len(lines)-1)]
}

// Cell escapes text for one cell of a table.
func Cell(text string) string {
	return strings.ReplaceAll(Text(strings.Join(strings.Fields(text), " ")), "|", `\|`)
}

// Text escapes plain text for Markdown.
func Text(text string) string {
	return strings.NewReplacer("*", `\*`, "<", "&lt;", "[", `\[`).Replace(text)
}
