package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/postrider/postrider/test/proof/planted"
)

// mutantLimit bounds a test, without the time to build it. A mutant that makes the test hang is
// detected when the time is up.
const mutantLimit = time.Minute

// kill checks that a test fails with each mutant, and prints a table. A test that fails without any
// mutant proves nothing, so each first runs without one.
func kill(ctx context.Context, mutants []planted.Bug, dir string) error {
	sound := map[planted.Test]bool{}
	survived := 0
	fmt.Println("| mutant | what a user would see | test | | seconds |\n|---|---|---|---|---|")
	for _, m := range mutants {
		folder := filepath.Join(dir, m.ID)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		overlay, err := m.Overlay(".", folder, nil)
		if err != nil {
			return err
		}
		for _, t := range m.Tests {
			if !sound[t] {
				failed, _, err := fails(ctx, t, "", mutantLimit, filepath.Join(folder, "sound.log"))
				if err == nil && failed {
					err = fmt.Errorf("%s -run '%s' fails without the mutant", t.Package, t.Run)
				}
				if err != nil {
					return fmt.Errorf("%s: %w", m.ID, err)
				}
				sound[t] = true
			}
			found, took, err := fails(ctx, t, overlay, mutantLimit, filepath.Join(folder, "test.log"))
			word := "caught"
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case err != nil:
				word = "**not run**: " + err.Error()
				survived++
			case !found:
				word = "**survived**"
				survived++
			}
			fmt.Printf("| %s %s | %s | %s `%s` | %s | %d |\n", m.ID, m.Name, m.Does, t.Package, strings.ReplaceAll(t.Run, "|", `\|`), word, int(took.Seconds()))
		}
	}
	if survived > 0 {
		return fmt.Errorf("%d of %d mutants were not caught", survived, len(mutants))
	}
	fmt.Printf("\n%d of %d caught.\n", len(mutants), len(mutants))
	return nil
}
