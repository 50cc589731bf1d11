package world

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// SkewVariable sets by how much the clock of a binary of [BuildSkewed] is wrong, as a duration:
// 36h, -2h30m. In every other [SkewPeriod] it is wrong by as much in the other direction, as if it
// were being set.
const SkewVariable = "CAMPAIGN_CLOCK_SKEW"

// SkewPeriod is the time between two jumps of the clock.
const SkewPeriod = 2 * time.Second

// BuildSkewed builds the command with a wall clock that can be wrong. That takes a change of the
// standard library: Go programs do not use the C library for the time, and a time namespace changes
// only the monotonic clock.
func BuildSkewed(ctx context.Context, target string) error {
	root, err := Root()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "skew-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	replace, err := SkewOverlay(ctx, dir)
	if err != nil {
		return err
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-overlay", overlay, "-o", target, "./cmd/postrider")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building with another clock: %w\n%s", err, out)
	}
	return nil
}

// SkewOverlay writes the changed files of the standard library into a folder, and returns them as a
// map for the -overlay flag of go build.
func SkewOverlay(ctx context.Context, dir string) (map[string]string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	source := filepath.Join(strings.TrimSpace(string(out)), "src", "time")
	text, err := os.ReadFile(filepath.Join(source, "time.go"))
	if err != nil {
		return nil, err
	}
	changed := bytes.Replace(text, []byte(askClock), []byte(askClock+"\tsec += skew(mono)\n"), 1)
	if bytes.Equal(changed, text) {
		return nil, errors.New("time.Now of this version of Go is not as it was")
	}
	replace := map[string]string{
		filepath.Join(source, "time.go"): filepath.Join(dir, "time.go"),
		filepath.Join(source, "skew.go"): filepath.Join(dir, "skew.go"),
	}
	return replace, errors.Join(
		os.WriteFile(filepath.Join(dir, "time.go"), changed, 0o600),
		os.WriteFile(filepath.Join(dir, "skew.go"), fmt.Appendf(nil, skewSource, SkewVariable, SkewPeriod), 0o600),
	)
}

const askClock = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"

const skewSource = `package time

import "syscall"

var skewBy = func() Duration {
	text, _ := syscall.Getenv(%q)
	d, _ := ParseDuration(text)
	return d
}()

// skew returns the current error of the wall clock in seconds.
func skew(mono int64) int64 {
	if mono/%d%%2 == 0 {
		return int64(skewBy / Second)
	}
	return -int64(skewBy / Second)
}
`
