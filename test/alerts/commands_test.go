package alerts_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if built != "" {
		_ = os.RemoveAll(filepath.Dir(built))
	}
	os.Exit(code)
}

var built string // the command, once it is there

var buildOnce = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "postrider-alerts")
	if err != nil {
		return nil, err
	}
	built = filepath.Join(dir, "postrider")
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", built, "./cmd/postrider")
	cmd.Dir = root
	return cmd.CombinedOutput()
})

// build returns the command, made from this tree.
func build(t *testing.T) string {
	t.Helper()
	if out, err := buildOnce(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return built
}

var (
	inText  = regexp.MustCompile(`postrider ([a-z][^,.]*)`)
	braces  = regexp.MustCompile(`\{\{[^}]*\}\}`)
	isGroup = regexp.MustCompile(`(?m)^ *postrider( [a-z]+)* \[command\]`)
)

// TestNextCommandsExist: what an alert tells somebody to type can be typed.
func TestNextCommandsExist(t *testing.T) {
	command := build(t)
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
