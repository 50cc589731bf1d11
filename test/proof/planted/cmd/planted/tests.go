package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/postrider/postrider/test/proof/planted"
)

// byTests checks that tests fail with each bug.
func byTests(ctx context.Context, bugs []planted.Bug, dir string) error {
	missed := 0
	for _, b := range bugs {
		if len(b.Tests) == 0 {
			fmt.Printf("%s  %-34s found by campaigns only\n", b.ID, b.Name)
			continue
		}
		folder := filepath.Join(dir, b.ID)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		overlay, err := b.Overlay(".", folder, nil)
		if err != nil {
			return err
		}
		for _, t := range b.Tests {
			found, took, err := fails(ctx, t, overlay, 5*time.Minute, filepath.Join(folder, "test.log"))
			if err != nil {
				return fmt.Errorf("%s: %w", b.ID, err)
			}
			word := "found by"
			if !found {
				word = "MISSED by"
				missed++
			}
			fmt.Printf("%s  %-34s %s %s -run '%s' (%d s)\n", b.ID, b.Name, word, t.Package, t.Run, int(took.Seconds()))
		}
	}
	if missed > 0 {
		return fmt.Errorf("%d bugs were missed", missed)
	}
	return nil
}

// fails reports whether a test fails with the bug of an overlay, or without one if that is empty. A
// test that takes longer than limit has failed. A failed build or a skip is an error.
func fails(ctx context.Context, t planted.Test, overlay string, limit time.Duration, log string) (bool, time.Duration, error) {
	args := []string{"test", "-count=1", "-timeout", limit.String(), "-v", "-run", t.Run}
	if overlay != "" {
		path, err := filepath.Abs(overlay)
		if err != nil {
			return false, 0, err
		}
		args = append(args, "-overlay", path)
	}
	start := time.Now()
	cmd := exec.CommandContext(ctx, "go", append(args, ".")...)
	cmd.Dir = t.Package
	cmd.Env = append(os.Environ(), "CI=true") // without a server that it needs the test fails
	out, err := cmd.CombinedOutput()
	if writeErr := os.WriteFile(log, out, 0o644); writeErr != nil {
		return false, 0, writeErr
	}
	text := string(out)
	var exit *exec.ExitError
	switch {
	case err != nil && !errors.As(err, &exit), strings.Contains(text, "[build failed]"), strings.Contains(text, "[setup failed]"),
		strings.Contains(text, "is not set"), strings.Contains(text, "(SQLSTATE 42601)"), strings.Contains(text, "(SQLSTATE 42703)"),
		strings.Contains(text, "(SQLSTATE 42883)"): // invalid SQL, or a call to a missing function
		return false, 0, fmt.Errorf("the test could not be run: see %s", log)
	case !strings.Contains(text, "--- PASS: ") && !strings.Contains(text, "--- FAIL: ") && !strings.Contains(text, "panic: "):
		return false, 0, fmt.Errorf("%s has no test %s, or skips it", t.Package, t.Run)
	}
	return err != nil, time.Since(start), nil
}
