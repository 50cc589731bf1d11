package report

import (
	"errors"
	"os"

	"github.com/postrider/postrider/test/proof/campaign/oracle"
	"github.com/postrider/postrider/test/proof/campaign/record"
)

// Run has what the report needs of one run.
type Run struct {
	record.Run
	Verdict  oracle.Verdict  `json:"verdict"`
	Timeline []record.Event  `json:"timeline,omitempty"`
	Samples  []record.Sample `json:"samples,omitempty"`
}

// Load reads a run and its verdict. If there is no verdict yet, it checks the files.
func Load(dir string) (Run, error) {
	r, err := record.Open(dir)
	if err != nil {
		return Run{}, err
	}
	run := Run{Run: r.Run}
	run.Verdict, err = oracle.Load(dir)
	if errors.Is(err, os.ErrNotExist) {
		run.Verdict, err = oracle.Check(dir)
	}
	if err != nil {
		return Run{}, err
	}
	run.ID = run.Verdict.Run
	for e, err := range r.Timeline() {
		if err != nil && !errors.Is(err, record.ErrTruncated) {
			return Run{}, err
		}
		if err == nil {
			run.Timeline = append(run.Timeline, e)
		}
	}
	for s, err := range r.Samples() {
		if err != nil && !errors.Is(err, record.ErrTruncated) {
			return Run{}, err
		}
		if err == nil {
			run.Samples = append(run.Samples, s)
		}
	}
	return run, nil
}
