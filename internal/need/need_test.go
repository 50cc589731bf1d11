package need_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/postrider/postrider/internal/need"
)

const child = "POSTRIDER_TEST_NEED"

// needs are calls that skip or fail in the given environment.
var needs = map[string]func(t *testing.T){
	"env":     func(t *testing.T) { need.Env(t, "POSTRIDER_TEST_NOWHERE", "nowhere") },
	"program": func(t *testing.T) { need.Program(t, "no-such-program", "that-package") },
	"long":    func(t *testing.T) { need.Long(t, "an hour") },
	"alone":   func(t *testing.T) { need.Alone(t, "measures time") },
}

// TestNeeds runs itself in a child process for each need: dev/check recognises by these words
// whether a skipped test is a failure.
func TestNeeds(t *testing.T) {
	if name := os.Getenv(child); name != "" {
		needs[name](t)
		return
	}
	t.Parallel()
	for _, c := range []struct{ name, env, want string }{
		{"env", "CI=true", "--- FAIL"},
		{"env", "CI=", "--- SKIP"},
		{"env", "CI=true", "dev/services up nowhere"},
		{"program", "CI=true", "--- FAIL"},
		{"program", "CI=", "--- SKIP"},
		{"program", "CI=true", "dev/services install that-package"},
		{"long", "POSTRIDER_LONG=", ": long: an hour"},
		{"long", "POSTRIDER_LONG=1", "--- PASS"},
		{"alone", "POSTRIDER_ALONE=later", ": alone: measures time"},
		{"alone", "POSTRIDER_ALONE=now", "--- PASS"},
	} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestNeeds$", "-test.v")
		cmd.Env = append(os.Environ(), child+"="+c.name, c.env)
		if out, _ := cmd.CombinedOutput(); !strings.Contains(string(out), c.want) {
			t.Errorf("%s with %s: want %q in\n%s", c.name, c.env, c.want, out)
		}
	}
}
