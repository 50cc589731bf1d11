package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
)

// A pkg is a package of the workspace.
type pkg struct {
	ImportPath   string
	Dir          string
	Imports      []string
	TestImports  []string
	XTestImports []string
	TestGoFiles  []string
	XTestGoFiles []string
	Module       struct{ Path string }
}

func (p pkg) hasTests() bool { return len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 }

// packages lists the packages of all modules of go.work. One pattern covers them, because their
// paths have the same prefix.
func packages(dir string) ([]pkg, error) {
	text, err := output(dir, "go", "list", "-json=ImportPath,Dir,Imports,TestImports,XTestImports,TestGoFiles,XTestGoFiles,Module", root+"/...")
	if err != nil {
		return nil, err
	}
	var all []pkg
	for d := json.NewDecoder(strings.NewReader(text)); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		if p.Dir, err = filepath.Rel(dir, p.Dir); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
}

// output runs a command and returns what it prints.
func output(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if err != nil {
		return "", errors.New(name + " " + strings.Join(args, " ") + ": " + err.Error() + "\n" + stderr.String())
	}
	return string(text), nil
}
