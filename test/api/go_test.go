package api

import (
	"fmt"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestGo compares the exported API of every public module with its listing in docs/api/go.
func TestGo(t *testing.T) {
	w := load(t)
	modules := make(map[string][]string)
	for _, p := range w.public {
		pkg, err := w.importer.Import(p.ImportPath)
		if err != nil {
			t.Fatal(err)
		}
		modules[p.Module.Path] = append(modules[p.Module.Path], exported(pkg)...)
	}
	known := make(map[string]bool)
	for path, lines := range modules {
		name := "core.txt"
		if path != root {
			name = strings.ReplaceAll(strings.TrimPrefix(path, root+"/"), "/", "-") + ".txt"
		}
		known[name] = true
		t.Run(name, func(t *testing.T) { golden(t, filepath.Join("go", name), lines) })
	}
	files, err := os.ReadDir(filepath.Join(listings, "go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !known[file.Name()] {
			t.Errorf("%s lists a module that is not public, or gone", file.Name())
		}
	}
}

// exported lists what a package exports: one line for each name, field and method, so that a
// difference shows what has changed. Names of parameters are left out.
func exported(pkg *types.Package) (lines []string) {
	d := describer{pkg}
	path := short(pkg)
	add := func(format string, args ...any) { lines = append(lines, path+": "+fmt.Sprintf(format, args...)) }
	for _, name := range pkg.Scope().Names() {
		if !token.IsExported(name) {
			continue
		}
		switch o := pkg.Scope().Lookup(name).(type) {
		case *types.Const:
			add("const %s %s = %s", name, d.text(o.Type()), o.Val().ExactString())
		case *types.Var:
			add("var %s %s", name, d.text(o.Type()))
		case *types.Func:
			add("func %s%s", name, d.signature(o.Signature()))
		case *types.TypeName:
			d.typeName(o, add)
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// A describer writes types as a package sees them.
type describer struct{ pkg *types.Package }

func (d describer) text(t types.Type) string {
	if s, ok := t.(*types.Signature); ok {
		return "func" + d.signature(s)
	}
	return types.TypeString(t, func(other *types.Package) string {
		if other == d.pkg {
			return ""
		}
		return short(other)
	})
}

// short returns a package's path without the part that all of ours begin with.
func short(pkg *types.Package) string {
	if pkg.Path() == root {
		return pkg.Name()
	}
	return strings.TrimPrefix(pkg.Path(), root+"/")
}

func (d describer) signature(s *types.Signature) string {
	params := d.tuple(s.Params())
	if s.Variadic() {
		last := len(params) - 1
		params[last] = "..." + strings.TrimPrefix(params[last], "[]")
	}
	text := d.typeParams(s.TypeParams()) + "(" + strings.Join(params, ", ") + ")"
	switch results := d.tuple(s.Results()); len(results) {
	case 0:
		return text
	case 1:
		return text + " " + results[0]
	default:
		return text + " (" + strings.Join(results, ", ") + ")"
	}
}

func (d describer) tuple(vars *types.Tuple) []string {
	texts := make([]string, 0, vars.Len())
	for v := range vars.Variables() {
		texts = append(texts, d.text(v.Type()))
	}
	return texts
}

func (d describer) typeParams(list *types.TypeParamList) string {
	texts := make([]string, 0, list.Len())
	for p := range list.TypeParams() {
		texts = append(texts, p.Obj().Name()+" "+d.text(p.Constraint()))
	}
	if len(texts) == 0 {
		return ""
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

func (d describer) typeName(o *types.TypeName, add func(string, ...any)) {
	name := o.Name()
	if o.IsAlias() {
		add("type %s = %s", name, d.text(types.Unalias(o.Type())))
		return
	}
	named := o.Type().(*types.Named)
	head := name + d.typeParams(named.TypeParams())
	switch u := named.Underlying().(type) {
	case *types.Struct:
		add("type %s struct", head)
		d.fields(name, u, add)
	case *types.Interface:
		add("type %s interface", head)
		d.interfaceOf(name, u, add)
		return // the method set has the same again
	default:
		add("type %s %s", head, d.text(u))
	}
	// The set of the pointer has promoted methods too. A method that values lack is marked.
	values := types.NewMethodSet(named)
	for m := range types.NewMethodSet(types.NewPointer(named)).Methods() {
		if !m.Obj().Exported() {
			continue
		}
		receiver := name
		if values.Lookup(d.pkg, m.Obj().Name()) == nil {
			receiver = "*" + name
		}
		add("method (%s) %s%s", receiver, m.Obj().Name(), d.signature(m.Type().(*types.Signature)))
	}
}

func (d describer) fields(name string, s *types.Struct, add func(string, ...any)) {
	for i := range s.NumFields() {
		f := s.Field(i)
		tag := ""
		if s.Tag(i) != "" {
			tag = " `" + s.Tag(i) + "`"
		}
		if f.Exported() {
			add("field %s.%s %s%s", name, f.Name(), d.text(f.Type()), tag)
			continue
		}
		if inner, ok := f.Type().Underlying().(*types.Struct); ok && f.Embedded() {
			d.fields(name, inner, add) // fields of it are promoted
		}
	}
}

func (d describer) interfaceOf(name string, i *types.Interface, add func(string, ...any)) {
	for m := range i.Methods() {
		if m.Exported() {
			add("method %s.%s%s", name, m.Name(), d.signature(m.Signature()))
		} else {
			add("method %s has unexported methods: others cannot implement it", name)
		}
	}
	for e := range i.EmbeddedTypes() {
		if _, union := e.(*types.Union); union {
			add("type %s is one of %s", name, d.text(e))
		}
	}
}
