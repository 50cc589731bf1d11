package model_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider/internal/need"
)

// outcome is the result of TLC.
type outcome struct {
	broken string        // the broken invariant, or empty
	states string        // number of distinct states, or those found so far
	took   time.Duration // processor time
	said   string
}

var (
	violated = regexp.MustCompile(`(?m)^Error: Invariant (\w+) is violated`)
	counted  = regexp.MustCompile(`(?m)^\d+ states generated, (\d+) distinct states found`)
)

// jar finds the model checker. In CI it must exist.
func jar(t *testing.T) string {
	t.Helper()
	need.Program(t, "java", "tlc")
	return need.Env(t, "POSTRIDER_TLC", "tlc")
}

// check has TLC check all states of a specification, or those up to the first that breaks an
// invariant. For short runs, Java's second compiler would cost more than it saves.
func check(t *testing.T, jar, name, cfg string, soon bool) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Hour)
	defer cancel()
	scratch := t.TempDir() // for TLC's states, and its own modules, which concurrent runs must not share
	config := filepath.Join(scratch, name+".cfg")
	if err := os.WriteFile(config, []byte(cfg), 0o600); err != nil {
		t.Fatal(err)
	}
	memory := "-Xmx1g"
	if need.IsLong() {
		memory = "-Xmx4g"
	}
	args := []string{memory, "-XX:+UseSerialGC", "-Djava.io.tmpdir=" + scratch}
	if soon {
		args = append(args, "-XX:TieredStopAtLevel=1")
	}
	args = append(args, "-cp", jar, "tlc2.TLC", "-workers", "1", "-metadir", filepath.Join(scratch, "states"), "-config", config, name+".tla")
	cmd := exec.CommandContext(ctx, "java", args...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err := cmd.Run()
	o := outcome{said: said.String()}
	if s := cmd.ProcessState; s != nil {
		o.took = s.UserTime() + s.SystemTime()
	}
	if found := violated.FindStringSubmatch(o.said); found != nil {
		o.broken = found[1]
	}
	if found := counted.FindAllStringSubmatch(o.said, -1); found != nil {
		o.states = found[len(found)-1][1]
	}
	finished := strings.Contains(o.said, "Model checking completed. No error has been found.")
	if err != nil && o.broken == "" || err == nil && !finished {
		t.Fatalf("TLC did not come to an end: %v\n%s", err, o.said)
	}
	return o
}
