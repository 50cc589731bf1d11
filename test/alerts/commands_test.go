package alerts_test

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/postrider/postrider/test/built"
)

var (
	inText  = regexp.MustCompile(`postrider ([a-z][^,.]*)`)
	braces  = regexp.MustCompile(`\{\{[^}]*\}\}`)
	isGroup = regexp.MustCompile(`(?m)^ *postrider( [a-z]+)* \[command\]`)
)

// TestNextCommandsExist checks that the commands named in alerts exist.
func TestNextCommandsExist(t *testing.T) {
	command := built.Program(t, "cmd/postrider")
	tried := make(map[string]bool)
	for _, r := range rules(t) {
		for _, found := range inText.FindAllStringSubmatch(braces.ReplaceAllString(r.Annotations["description"], "x"), -1) {
			line := found[1]
			if tried[line] {
				continue
			}
			tried[line] = true
			out, err := exec.CommandContext(t.Context(), command, append(strings.Fields(line), "--help")...).CombinedOutput()
			if err != nil || isGroup.Match(out) {
				t.Errorf("%s: postrider %s: %v\n%.300s", r.Alert, line, err, out)
			}
		}
	}
	if len(tried) < 10 {
		t.Errorf("found only %d commands in the descriptions", len(tried))
	}
}
