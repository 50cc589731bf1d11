package postridertest_test

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/postridertest"
)

// failing are assertions that fail. Each is on a line of its own, which the failure has to name.
func failing(t *testing.T) map[string]func(*testing.T) {
	store, rec := recorder()
	if err := rec.Enqueue(t.Context(), store.Begin(), event("a", "1")); err != nil {
		t.Fatal(err)
	}
	later := event("later", "1")
	later.DeliverAfter = time.Now().Add(time.Hour)
	world := func(t *testing.T) *postridertest.World {
		w := postridertest.New(t, postridertest.Config{})
		commit(t, w, later)
		return w
	}
	return map[string]func(*testing.T){
		"enqueued":    func(t *testing.T) { rec.Enqueued(t, match{Type: "x"}) },
		"in order":    func(t *testing.T) { rec.InOrder(t, match{Type: "x"}) },
		"exactly":     func(t *testing.T) { rec.Exactly(t) },
		"none":        func(t *testing.T) { rec.RequireNone(t) },
		"require":     func(t *testing.T) { world(t).Report().Require(t, postridertest.Sent, match{}) },
		"report none": func(t *testing.T) { world(t).Report().RequireNone(t, postridertest.Enqueued, match{}) },
		"clean":       func(t *testing.T) { world(t).Deliver().RequireClean(t) },
		"settle":      func(t *testing.T) { world(t).Settle() },
		"advance":     func(t *testing.T) { world(t).Advance(time.Hour) },
		"inbox":       func(t *testing.T) { world(t).Inbox("", inbox.Config{}) },
		"publish": func(t *testing.T) {
			w := world(t)
			w.Broker.Fail(func(postrider.Message) error { return context.Canceled })
			w.Publish(event("a", "1"))
		},
	}
}

func TestFailuresNameTheLineOfTheCaller(t *testing.T) {
	if os.Getenv("POSTRIDERTEST_FAIL") != "" {
		for name, f := range failing(t) {
			t.Run(name, f)
		}
		return
	}
	_, file, _, _ := runtime.Caller(0)
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFailuresNameTheLineOfTheCaller$")
	cmd.Env = append(os.Environ(), "POSTRIDERTEST_FAIL=1")
	output, _ := cmd.CombinedOutput() // it fails, of course
	places := regexp.MustCompile(`(?m)^\s+(\S+\.go):(\d+): postridertest: `).FindAllStringSubmatch(string(output), -1)
	lines := strings.Split(string(source), "\n")
	for _, p := range places {
		n, _ := strconv.Atoi(p[2])
		if p[1] != "line_test.go" || !strings.Contains(lines[n-1], "func(t *testing.T) {") && !strings.Contains(lines[n-1], "w.Publish") {
			t.Errorf("reported a failure at %s:%s", p[1], p[2])
		}
	}
	if want := len(failing(t)); len(places) != want {
		t.Errorf("%d failures, want %d:\n%s", len(places), want, output)
	}
}
