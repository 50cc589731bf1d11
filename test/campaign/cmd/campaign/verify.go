package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
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

// commit is what this program was built from, as far as it knows.
func commit() (id string, dirty bool) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", false
	}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			id = setting.Value
		case "vcs.modified":
			dirty = setting.Value == "true"
		}
	}
	return id, dirty
}
