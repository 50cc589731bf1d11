package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/postrider/postrider/test/proof/planted/rule"
)

const module = "github.com/postrider/postrider/"

// sources are the parsed packages of the product.
type sources struct {
	order    []string
	packages map[string]*pkgSource // by folder
	imports  map[string][]string   // what the tests of a package depend on, among the product
}

type pkgSource struct {
	name  string
	files []*rule.File
}

func load(ctx context.Context, packages []string) (*sources, error) {
	s := &sources{order: packages, packages: make(map[string]*pkgSource)}
	args := []string{"list", "-f", "{{.ImportPath}} {{.Name}} {{join .GoFiles \" \"}}"}
	for _, p := range packages {
		args = append(args, "./"+p)
	}
	out, err := goTool(ctx, args...)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		folder := strings.TrimPrefix(fields[0], module)
		p := &pkgSource{name: fields[1]}
		for _, name := range fields[2:] {
			path := folder + "/" + name
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			f, err := rule.Parse(path, text)
			if err != nil {
				return nil, err
			}
			p.files = append(p.files, f)
		}
		s.packages[folder] = p
	}
	return s, nil
}

// mutants returns those of a package.
func (s *sources) mutants(pkg string) []rule.Mutant {
	p := s.packages[pkg]
	if p == nil {
		return nil
	}
	all := []rule.Mutant{}
	for _, f := range p.files {
		all = append(all, f.Mutants...)
	}
	return all
}

func (s *sources) all() []rule.Mutant {
	var all []rule.Mutant
	for _, pkg := range s.order {
		all = append(all, s.mutants(pkg)...)
	}
	return all
}

// hash identifies the source of a mutant.
func (s *sources) hash(m rule.Mutant) string {
	path, _, _ := strings.Cut(m.Name, ":")
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// users returns the packages whose tests look for mutants of a package: its own first, then those
// whose tests depend on it.
func (s *sources) users(ctx context.Context, pkg string) ([]string, error) {
	if s.imports == nil {
		args := []string{"list", "-test", "-f", "{{if .ForTest}}{{.ForTest}} {{join .Deps \" \"}}{{end}}"}
		for _, p := range s.order {
			args = append(args, "./"+p)
		}
		out, err := goTool(ctx, args...)
		if err != nil {
			return nil, err
		}
		s.imports = make(map[string][]string)
		for line := range strings.Lines(out) {
			for i, dep := range strings.Fields(line) {
				if i == 0 {
					line = strings.TrimPrefix(dep, module)
					continue
				}
				s.imports[line] = append(s.imports[line], strings.TrimPrefix(dep, module))
			}
		}
	}
	users := []string{pkg}
	for _, other := range s.order {
		if other != pkg && slices.Contains(s.imports[other], pkg) {
			users = append(users, other)
		}
	}
	return users, nil
}

// prepare writes the sources with all their mutants, for go test -overlay.
func (r *runner) prepare() error {
	root, err := filepath.Abs(".")
	if err != nil {
		return err
	}
	if r.dir, err = filepath.Abs(r.dir); err != nil {
		return err
	}
	list := struct{ Replace map[string]string }{make(map[string]string)}
	add := func(path, text string) error {
		changed := filepath.Join(r.dir, "src", strings.ReplaceAll(path, "/", "_"))
		list.Replace[filepath.Join(root, path)] = changed
		return os.WriteFile(changed, []byte(text), 0o644)
	}
	if err := os.MkdirAll(filepath.Join(r.dir, "src"), 0o755); err != nil {
		return err
	}
	numbers := make(map[uint32]string)
	for folder, p := range r.product.packages {
		for _, f := range p.files {
			for _, m := range f.Mutants {
				if other := numbers[m.On()]; other != "" {
					return fmt.Errorf("%s and %s have the same number", m.Name, other)
				}
				numbers[m.On()] = m.Name
			}
			if err := add(f.Path, f.Rewrite()); err != nil {
				return err
			}
		}
		if err := add(folder+"/mutant_on.go", rule.Switch(p.name)); err != nil {
			return err
		}
	}
	text, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return err
	}
	r.overlay = filepath.Join(r.dir, "overlay.json")
	r.tests = make(map[string]*tests)
	return os.WriteFile(r.overlay, text, 0o644)
}

func goTool(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w", args[0], err)
	}
	return string(out), nil
}
