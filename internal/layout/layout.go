// Package layout checks the file layout of packages in tests.
package layout

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// listed matches the files that a package's doc comment lists, such as "//   - window.go: what was
// read". A line may list two.
var listed = regexp.MustCompile(`(?m)^//\s+- (\w+\.go)(?:, (\w+\.go))?:`)

// Package is the package in a folder.
type Package struct {
	t     testing.TB
	files map[string]*ast.File // by name, without tests
	info  types.Info
	fset  *token.FileSet
	order []string // as doc.go lists them
}

// Load loads the package in the working directory of a test.
func Load(t testing.TB) *Package {
	t.Helper()
	p := &Package{t: t, files: make(map[string]*ast.File), fset: token.NewFileSet(), info: types.Info{Uses: make(map[*ast.Ident]types.Object)}}
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var all []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(p.fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		p.files[name] = file
		all = append(all, file)
	}
	// Imports need not be resolved: only the package's own declarations matter.
	conf := types.Config{Importer: nothing{}, Error: func(error) {}}
	_, _ = conf.Check("p", p.fset, all, &p.info)
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range listed.FindAllStringSubmatch(string(text), -1) {
		for _, name := range match[1:] {
			if name != "" {
				p.order = append(p.order, name)
			}
		}
	}
	return p
}

// nothing is an importer that returns empty packages.
type nothing struct{}

func (nothing) Import(path string) (*types.Package, error) {
	pkg := types.NewPackage(path, filepath.Base(path))
	pkg.MarkComplete()
	return pkg, nil
}

// ReadsDown checks that doc.go lists all files, and that no file refers to an earlier one.
func (p *Package) ReadsDown() {
	p.t.Helper()
	for name := range p.files {
		if name != "doc.go" && !slices.Contains(p.order, name) {
			p.t.Errorf("doc.go does not list %s", name)
		}
	}
	back := make(map[string]bool)
	for use, object := range p.info.Uses {
		if !object.Pos().IsValid() {
			continue
		}
		from, to := p.fset.File(use.Pos()).Name(), p.fset.File(object.Pos()).Name()
		if slices.Index(p.order, to) < slices.Index(p.order, from) {
			back[fmt.Sprintf("%s refers back to %s of %s", from, object.Name(), to)] = true
		}
	}
	for text := range back {
		p.t.Error(text)
	}
}

// Structs checks that no struct type has more than most fields, except for the types in but.
func (p *Package) Structs(most int, but ...string) {
	p.t.Helper()
	for _, file := range p.files {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok && s.Fields.NumFields() > most && !slices.Contains(but, spec.Name.Name) {
				p.t.Errorf("%s has %d fields", spec.Name.Name, s.Fields.NumFields())
			}
			return true
		})
	}
}

// Uses checks that the package imports only the given packages, starts no goroutine and uses none
// of the given functions, such as "time.Now".
func (p *Package) Uses(imports []string, but ...string) {
	p.t.Helper()
	for name, file := range p.files {
		for _, spec := range file.Imports {
			if path := strings.Trim(spec.Path.Value, `"`); !slices.Contains(imports, path) {
				p.t.Errorf("%s imports %s", name, path)
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				p.t.Errorf("%s starts a goroutine", name)
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && slices.Contains(but, x.Name+"."+n.Sel.Name) {
					p.t.Errorf("%s uses %s.%s", name, x.Name, n.Sel.Name)
				}
			}
			return true
		})
	}
}
