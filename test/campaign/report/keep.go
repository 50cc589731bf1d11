package report

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/postrider/postrider/test/campaign/record"
)

// Keep writes what the page needs of a run to a file in dir, without what only its machine knows. Later runs add up with it.
func Keep(dir string, run Run) error {
	run.Flags = telling(run.Flags)
	run.Timeline = slices.Clone(run.Timeline)
	for i := range run.Timeline {
		if e := &run.Timeline[i]; strings.Contains(e.Detail, "/") {
			e.Detail = ""
		}
	}
	run.Samples = slices.Clone(run.Samples)
	for i := range run.Samples {
		run.Samples[i].Processes = nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return record.WriteJSON(filepath.Join(dir, safe(run.ID)+".json"), run)
}

// Kept reads all runs that were kept in dir, the earliest first.
func Kept(dir string) ([]Run, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, errors.New(dir + ": no run was kept")
	}
	runs := make([]Run, len(files))
	for i, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, &runs[i]); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(runs, func(a, b Run) int { return a.Begin.Compare(b.Begin) })
	return runs, nil
}
