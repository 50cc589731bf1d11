package report

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
)

// File is a file of a report.
type File struct {
	Name string // without a folder
	Text []byte
}

// Write writes a page about all runs, and its figures beside it. Their names begin with that of the
// page.
func Write(file string, runs ...Run) error {
	name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	for _, f := range Files(name, runs...) {
		path := filepath.Join(filepath.Dir(file), f.Name)
		if strings.HasSuffix(f.Name, ".md") {
			path = file
		}
		if err := os.WriteFile(path, f.Text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Files returns the page NAME.md and its figures.
func Files(name string, runs ...Run) []File {
	t := sum(runs)
	p := &page{name: name, runs: runs, total: t}
	p.picture("recovery", recoveryPicture(t.recoveries))
	p.picture("duplicates", duplicatesPicture(t.kinds, t.Events))
	for _, run := range runs {
		if len(run.Timeline) > 0 { // the figure of a kept run already exists
			p.picture("timeline-"+safe(run.ID), timelinePicture(run))
		}
	}
	return append(p.pictures, File{name + ".md", p.text()})
}

func (p *page) picture(what, svg string) {
	p.pictures = append(p.pictures, File{p.name + "-" + what + ".svg", []byte(svg)})
}

// safe converts a run's name to a part of a file name.
func safe(id string) string {
	return string(bytes.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '-'
	}, []byte(id)))
}
