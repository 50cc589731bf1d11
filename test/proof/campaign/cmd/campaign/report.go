package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/postrider/postrider/test/proof/campaign/report"
)

func reportCommand(_ context.Context, args []string) error {
	flags := newFlags("report [DIR...] -o FILE.md")
	file := flags.String("o", "", "the page, a `file`; beside it are its pictures, and runs/ with what it needs of each run")
	dirs, err := parse(flags, args)
	if err != nil {
		return err
	}
	if *file == "" {
		return fmt.Errorf("%w: want -o FILE.md, and folders of runs to be added", errUsage)
	}
	kept := filepath.Join(filepath.Dir(*file), "runs")
	whole := make(map[string]report.Run)
	for _, dir := range dirs {
		run, err := report.Load(dir)
		if err != nil {
			return err
		}
		if err := report.Keep(kept, run); err != nil {
			return err
		}
		whole[run.ID] = run
	}
	runs, err := report.Kept(kept)
	if err != nil {
		return err
	}
	for i := range runs {
		if run, ok := whole[runs[i].ID]; ok {
			runs[i].Timeline, runs[i].Samples = run.Timeline, run.Samples
		}
	}
	if err := report.Write(*file, runs...); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "written:", *file)
	return nil
}
