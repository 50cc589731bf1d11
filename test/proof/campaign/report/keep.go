package report

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/postrider/postrider/test/proof/campaign/record"
)

// Keep writes a summary of a run to a file in dir: what the page shows of it, without data specific
// to its machine. The timeline figure needs the run's own folder, which its flags and seed
// reproduce. Later runs add up with it.
func Keep(dir string, run Run) error {
	run.Flags = telling(run.Flags)
	run.Timeline, run.Samples = nil, nil
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return record.WriteJSON(filepath.Join(dir, safe(run.ID)+".json"), run)
}

// Kept reads all summaries in dir, the earliest run first.
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
