package main

import (
	"context"
	"fmt"
	"os"

	"github.com/postrider/postrider/test/campaign/report"
)

func reportCommand(_ context.Context, args []string) error {
	flags := newFlags("report DIR... -o FILE.md")
	file := flags.String("o", "", "the page, a `file` beside which its pictures are written")
	dirs, err := parse(flags, args)
	if err != nil {
		return err
	}
	if len(dirs) == 0 || *file == "" {
		return fmt.Errorf("%w: want folders of runs, and -o FILE.md", errUsage)
	}
	runs := make([]report.Run, len(dirs))
	for i, dir := range dirs {
		if runs[i], err = report.Load(dir); err != nil {
			return err
		}
	}
	if err := report.Write(*file, runs...); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "written:", *file)
	return nil
}
