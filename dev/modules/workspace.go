package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// root is the path of the core module, which all others of ours begin with.
const root = "github.com/postrider/postrider"

func ours(path string) bool { return path == root || strings.HasPrefix(path, root+"/") }

// A module is one that go.work uses.
type module struct {
	Path     string
	Dir      string            // in the repository, such as "store/postgres"; "." for the core
	Requires map[string]string // ours only: path to version
	Replaces []string          // paths, of any module
}

// tag names the tag that publishes a version of the module.
func (m module) tag(version string) string { return path.Join(m.Dir, version) }

// A workspace is what go.work says.
type workspace struct {
	dir      string
	modules  []module                     // each after those that it requires
	replaces map[string]map[string]string // path to version to folder
}

func load(dir string) (workspace, error) {
	var work struct {
		Use     []struct{ DiskPath string }
		Replace []struct {
			Old, New struct{ Path, Version string }
		}
	}
	w := workspace{dir: dir, replaces: make(map[string]map[string]string)}
	if err := edited(dir, &work, "work", "edit", "-json", "go.work"); err != nil {
		return w, err
	}
	for _, r := range work.Replace {
		if w.replaces[r.Old.Path] == nil {
			w.replaces[r.Old.Path] = make(map[string]string)
		}
		w.replaces[r.Old.Path][r.Old.Version] = filepath.Clean(r.New.Path)
	}
	var all []module
	for _, use := range work.Use {
		var mod struct {
			Module  struct{ Path string }
			Require []struct{ Path, Version string }
			Replace []struct{ Old struct{ Path string } }
		}
		m := module{Dir: filepath.ToSlash(filepath.Clean(use.DiskPath)), Requires: make(map[string]string)}
		if err := edited(filepath.Join(dir, m.Dir), &mod, "mod", "edit", "-json"); err != nil {
			return w, err
		}
		m.Path = mod.Module.Path
		for _, r := range mod.Require {
			if ours(r.Path) {
				m.Requires[r.Path] = r.Version
			}
		}
		for _, r := range mod.Replace {
			m.Replaces = append(m.Replaces, r.Old.Path)
		}
		all = append(all, m)
	}
	var err error
	w.modules, err = sorted(all)
	return w, err
}

// edited runs "go work edit -json" or "go mod edit -json".
func edited(dir string, into any, args ...string) error {
	text, err := output(dir, nil, "go", args...)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(text), into)
}

// sorted puts each module behind those that it requires: the core first.
func sorted(all []module) ([]module, error) {
	byPath := make(map[string]module)
	for _, m := range all {
		byPath[m.Path] = m
	}
	var out []module
	state := make(map[string]int) // 1 while its requirements are visited, 2 when it is in out
	var visit func(path string) error
	visit = func(path string) error {
		m, ok := byPath[path]
		switch {
		case !ok:
			return fmt.Errorf("%s is required, but go.work does not use it", path)
		case state[path] == 2:
			return nil
		case state[path] == 1:
			return fmt.Errorf("%s requires itself, by way of others: no order of releases is possible", path)
		}
		state[path] = 1
		for _, r := range slices.Sorted(maps.Keys(m.Requires)) {
			if err := visit(r); err != nil {
				return err
			}
		}
		state[path] = 2
		out = append(out, m)
		return nil
	}
	for _, path := range slices.Sorted(maps.Keys(byPath)) {
		if err := visit(path); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// version is the one at which our modules require each other.
func (w workspace) version() string {
	for v := range w.replaces[root] {
		return v
	}
	return ""
}

// check finds what keeps users from getting our modules at a version, or us from building them
// together before it is published.
func (w workspace) check(version string) error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if v, err := parseVersion(version); err != nil {
		return fmt.Errorf("go.work must replace %s at one version: %w", root, err)
	} else if v.compare(version0) <= 0 {
		wrong("go.work: no release has the version %s", version)
	}
	for _, m := range w.modules {
		if m.Path != strings.TrimSuffix(root+"/"+m.Dir, "/.") {
			wrong("%s/go.mod: in this folder, the module must be %s", m.Dir, strings.TrimSuffix(root+"/"+m.Dir, "/."))
		}
		for _, path := range m.Replaces {
			wrong("%s/go.mod replaces %s, which holds for nobody who requires the module, and go install refuses it", m.Dir, path)
		}
		for _, path := range slices.Sorted(maps.Keys(m.Requires)) {
			if at := m.Requires[path]; at != version {
				wrong("%s/go.mod requires %s at %s, not %s", m.Dir, path, at, version)
			}
		}
		if got := w.replaces[m.Path]; len(got) != 1 || got[version] != m.Dir {
			wrong("go.work must replace %s at %s by ./%s, and at no other version", m.Path, version, m.Dir)
		}
	}
	for path := range w.replaces {
		if !slices.ContainsFunc(w.modules, func(m module) bool { return m.Path == path }) {
			wrong("go.work replaces %s, so users get another one than the tests", path)
		}
	}
	if text, err := w.read(chart); err != nil {
		errs = append(errs, err)
	} else if text != charted(text, version) {
		wrong("%s must have the version %s, as all modules do, because it names the image", chart, version)
	}
	return errors.Join(errs...)
}

var version0 version

// require sets the version of all requirements between our modules, and that of go.work.
func (w workspace) require(version string) error {
	work := []string{"work", "edit"}
	for _, m := range w.modules {
		work = append(work, "-replace="+m.Path+"@"+version+"="+local(m.Dir))
		for old := range w.replaces[m.Path] {
			if old != version {
				work = append(work, "-dropreplace="+strings.TrimSuffix(m.Path+"@"+old, "@"))
			}
		}
		args := []string{"mod", "edit"}
		for path := range m.Requires {
			args = append(args, "-require="+path+"@"+version)
		}
		if len(args) > 2 {
			if _, err := output(filepath.Join(w.dir, m.Dir), nil, "go", args...); err != nil {
				return err
			}
		}
	}
	_, err := output(w.dir, nil, "go", append(work, "go.work")...)
	return err
}

// read returns a file of the repository.
func (w workspace) read(name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(w.dir, name))
	return string(text), err
}

// write replaces a file of the repository.
func (w workspace) write(name, text string) error {
	return os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o644)
}

// local makes a folder of the repository a path that go.work takes for a folder.
func local(dir string) string {
	if dir == "." {
		return "./"
	}
	return "./" + dir
}

// output runs a command and returns what it prints.
func output(dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, stderr.String())
	}
	return string(text), nil
}
