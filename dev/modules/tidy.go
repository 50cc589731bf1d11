package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// tidy runs "go mod tidy" in a module, or in all. That command knows no go.work: by itself it would
// look for our modules as they were published. So it works on a copy of go.mod that replaces them.
func (w workspace) tidy(folders []string) error {
	for _, m := range w.modules {
		if len(folders) > 0 && !slices.Contains(folders, m.Dir) {
			continue
		}
		if err := w.tidyOne(m); err != nil {
			return err
		}
	}
	return nil
}

func (w workspace) tidyOne(m module) error {
	dir := filepath.Join(w.dir, m.Dir)
	temporary, err := os.MkdirTemp("", "tidy")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	mod, sum := filepath.Join(temporary, "go.mod"), filepath.Join(temporary, "go.sum")
	oldSum, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	if err := os.WriteFile(sum, oldSum, 0o644); err != nil {
		return err
	}
	oldMod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(mod, oldMod, 0o644); err != nil {
		return err
	}
	replace, drop := []string{"mod", "edit"}, []string{"mod", "edit"}
	for _, other := range w.modules {
		at := other.Path + "@" + w.version()
		replace = append(replace, "-replace="+at+"="+filepath.Join(w.dir, other.Dir))
		drop = append(drop, "-dropreplace="+at)
	}
	for _, args := range [][]string{append(replace, mod), {"mod", "tidy", "-modfile=" + mod}, append(drop, mod)} {
		if _, err := output(dir, []string{"GOWORK=off", "GOFLAGS="}, "go", args...); err != nil {
			return err
		}
	}
	newMod, err := os.ReadFile(mod)
	if err != nil {
		return err
	}
	newSum, err := os.ReadFile(sum)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	// What was replaced has no hashes; those of published modules stay.
	var own []string
	for line := range strings.Lines(string(oldSum)) {
		required := sumPath(line) + " " + w.version()
		if ours(sumPath(line)) && strings.HasPrefix(line, required) && strings.Contains(string(newMod), required) {
			own = append(own, strings.TrimSuffix(line, "\n"))
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), newMod, 0o644); err != nil {
		return err
	}
	merged := mergeSums(string(newSum), own)
	if merged == "" && len(oldSum) == 0 {
		return nil
	}
	return os.WriteFile(filepath.Join(dir, "go.sum"), []byte(merged), 0o644)
}
