package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

func verifyCommand(_ context.Context, args []string) error {
	flags := newFlags("verify [--json] DIR")
	asJSON := flags.Bool("json", false, "print the verdict as JSON")
	dirs, err := parse(flags, args)
	if err != nil {
		return err
	}
	if len(dirs) != 1 {
		return fmt.Errorf("%w: want the folder of one run", errUsage)
	}
	return judge(dirs[0], *asJSON)
}

func printJSON(value any) error {
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", "  ")
	return out.Encode(value)
}

// commit returns the current commit of the repository, and whether there are uncommitted changes.
// The binaries may be from another commit.
func commit() (id string, dirty bool) {
	id, _ = git("rev-parse", "HEAD")
	changes, _ := git("status", "--porcelain", "--untracked-files=no")
	return id, changes != ""
}

func git(args ...string) (string, error) {
	out, err := exec.Command("git", args...).Output()
	return strings.TrimSpace(string(out)), err
}
