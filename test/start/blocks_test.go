package start_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the root of the repository.
const root = "../.."

// published is the address in the documentation that readers clone from.
const published = "https://github.com/postrider/postrider"

// fence matches the shell blocks of a page.
var fence = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// blocks returns the commands of a page, or of one of its sections, in order.
func blocks(t *testing.T, page, section string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	content := string(text)
	if section != "" {
		_, rest, found := strings.Cut(content, "\n## "+section+"\n")
		if !found {
			t.Fatalf("%s has no section %q", page, section)
		}
		content, _, _ = strings.Cut(rest, "\n## ")
	}
	var all []string
	for _, match := range fence.FindAllStringSubmatch(content, -1) {
		all = append(all, match[1])
	}
	if len(all) == 0 {
		t.Fatalf("%s has no commands", page)
	}
	if !slices.ContainsFunc(all, func(b string) bool { return strings.Contains(b, published) }) {
		t.Fatalf("%s does not say where to clone from", page)
	}
	return all
}

var startsDev = regexp.MustCompile(`(?m)^bin/postrider dev($| --)`)

// stays reports whether the last command of a block runs until it is stopped.
func stays(block string) bool { return startsDev.MatchString(block) }
