package api

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/types"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// unpromised is the file with the bench commands. Their figures may change with each release.
const unpromised = "bench.go"

// TestJSON compares the fields of everything that the command prints with --json, and of
// /readyz?verbose, with docs/api/json.txt. They are read from the types of what is passed to the
// method json and to json.MarshalIndent, so no command can be forgotten.
func TestJSON(t *testing.T) {
	w := load(t)
	var files []*ast.File
	for _, name := range w.command.GoFiles {
		file, err := parser.ParseFile(w.fset, filepath.Join(w.command.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	info := types.Info{Types: make(map[ast.Expr]types.TypeAndValue)}
	conf := types.Config{Importer: w.importer}
	if _, err := conf.Check(command, w.fset, files, &info); err != nil {
		t.Fatal(err)
	}
	var lines []string
	calls := 0
	for _, file := range files {
		for _, decl := range file.Decls {
			ast.Inspect(decl, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || len(call.Args) == 0 {
					return true
				}
				if f, ok := call.Fun.(*ast.SelectorExpr); !ok || f.Sel.Name != "json" && f.Sel.Name != "MarshalIndent" {
					return true
				}
				calls++
				printed := info.TypeOf(call.Args[0])
				if types.IsInterface(printed) {
					if at := w.fset.Position(call.Pos()); filepath.Base(at.Filename) != unpromised {
						t.Errorf("%v: the type of what is printed is not known", at)
					}
					return true
				}
				lines = append(lines, shape(label(printed, decl), printed, nil)...)
				return true
			})
		}
	}
	if calls < 30 {
		t.Errorf("only %d places print JSON", calls)
	}
	slices.Sort(lines)
	golden(t, "json.txt", slices.Compact(lines))
}

// label names what is printed after its type, or else after the function that prints it.
func label(printed types.Type, decl ast.Decl) string {
	switch u := printed.(type) {
	case *types.Named:
		return u.Obj().Pkg().Name() + "." + u.Obj().Name()
	case *types.Pointer:
		return label(u.Elem(), decl)
	case *types.Slice:
		return label(u.Elem(), decl) + "[]"
	}
	return "cli." + decl.(*ast.FuncDecl).Name.Name
}

// shape lists the fields that encoding/json writes for a type, with their kinds.
func shape(path string, t types.Type, within []types.Type) []string {
	if slices.ContainsFunc(within, func(outer types.Type) bool { return types.Identical(outer, t) }) {
		return []string{path + " (again)"}
	}
	within = append(slices.Clone(within), t)
	for _, name := range []string{"MarshalJSON", "MarshalText"} {
		if m, _, _ := types.LookupFieldOrMethod(t, true, nil, name); m != nil {
			return []string{path + " " + types.TypeString(t, (*types.Package).Name)}
		}
	}
	switch u := t.Underlying().(type) {
	case *types.Pointer:
		return shape(path, u.Elem(), within)
	case *types.Slice:
		if b, ok := u.Elem().Underlying().(*types.Basic); ok && b.Kind() == types.Byte {
			return []string{path + " base64"}
		}
		return shape(strings.TrimSuffix(path, "[]")+"[]", u.Elem(), within)
	case *types.Array:
		return shape(path+"[]", u.Elem(), within)
	case *types.Map:
		return shape(path+"{}", u.Elem(), within)
	case *types.Struct:
		return fieldsOf(path, u, within)
	default:
		return []string{path + " " + types.TypeString(u, (*types.Package).Name)}
	}
}

func fieldsOf(path string, s *types.Struct, within []types.Type) (lines []string) {
	for i := range s.NumFields() {
		f := s.Field(i)
		name, options, _ := strings.Cut(reflect.StructTag(s.Tag(i)).Get("json"), ",")
		if name == "-" && options == "" {
			continue
		}
		if f.Embedded() && name == "" {
			inner := f.Type()
			if p, ok := inner.Underlying().(*types.Pointer); ok {
				inner = p.Elem()
			}
			if _, ok := inner.Underlying().(*types.Struct); ok {
				lines = append(lines, shape(path, inner, within)...)
				continue
			}
		}
		if !f.Exported() {
			continue
		}
		if name == "" {
			name = f.Name()
		}
		for _, line := range shape(path+"."+name, f.Type(), within) {
			if strings.HasPrefix(options, "omit") && line != "" {
				line = fmt.Sprintf("%s (may be missing)", line)
			}
			lines = append(lines, line)
		}
	}
	return lines
}
