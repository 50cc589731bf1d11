package rule

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"hash/fnv"
	"slices"
	"strings"
)

// Mutant is one mistake at one place.
type Mutant struct {
	Name string // file:function:kind:n, where n counts the kind within the function
	Was  string // on one line
	Is   string

	kind kind
	node ast.Node
	text string // what replaces the node, for some kinds
}

// kind is what a mutant does.
type kind string

const (
	bound    kind = "bound"   // < and <=, or > and >=, are exchanged
	negated  kind = "negated" // a comparison or the condition of an if or for
	andOr    kind = "and-or"  // && and || are exchanged
	first    kind = "first"   // of && and ||, only the first operand is left
	second   kind = "second"  // of && and ||, only the second operand is left
	skipped  kind = "skipped" // the body of if err != nil
	nilError kind = "nil"     // nil is returned instead of an error
	boolean  kind = "bool"    // true and false are exchanged in a return
	jump     kind = "jump"    // a continue or break is left out
)

// On is the number that chooses a mutant at run time. It depends only on the name, so that mutants
// of other packages do not change what is compiled.
func (m Mutant) On() uint32 { return number(m.Name) }

func number(s string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(s)) // a hash returns no error
	return h.Sum32()
}

// String describes the change.
func (m Mutant) String() string { return m.Was + " → " + m.Is }

// File is a parsed source file.
type File struct {
	Path    string // relative to the root of the repository, with slashes
	Mutants []Mutant

	source  string
	syntax  *ast.File
	fset    *token.FileSet
	counted map[string]int // mutants by name without number
}

// Parse finds all mutants of a file. A generated file has none.
func Parse(path string, source []byte) (*File, error) {
	f := &File{Path: path, source: string(source), fset: token.NewFileSet(), counted: make(map[string]int)}
	var err error
	f.syntax, err = parser.ParseFile(f.fset, path, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	if ast.IsGenerated(f.syntax) {
		return f, nil
	}
	for _, d := range f.syntax.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Body != nil && !isText(d) {
				f.find(d.Body, scope{name: nameOf(d), results: d.Type.Results})
			}
		case *ast.GenDecl:
			if d.Tok == token.VAR {
				f.find(d, scope{name: "var"})
			}
		}
	}
	return f, nil
}

// scope is the function around a node.
type scope struct {
	name    string
	results *ast.FieldList // of the innermost function
}

// returnsError reports whether the last of n results is an error.
func (s scope) returnsError(n int) bool {
	if s.results == nil || s.results.NumFields() != n {
		return false
	}
	last, ok := s.results.List[len(s.results.List)-1].Type.(*ast.Ident)
	return ok && last.Name == "error"
}

// find adds the mutants below a node.
func (f *File) find(root ast.Node, in scope) {
	conditions := make(map[ast.Expr]bool)
	ast.Inspect(root, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			f.find(n.Body, scope{in.name, n.Type.Results})
			return false
		case *ast.GenDecl:
			return n.Tok != token.CONST
		case *ast.CallExpr:
			return !isLog(n)
		case *ast.IfStmt:
			if onlyLogs(n) {
				return false
			}
			conditions[n.Cond] = true
			f.condition(n.Cond, in)
		case *ast.ForStmt:
			if n.Cond != nil {
				conditions[n.Cond] = true
				f.condition(n.Cond, in)
			}
		case *ast.BinaryExpr:
			if !conditions[n] || !isErrorCheck(n) {
				f.binary(n, in)
			}
		case *ast.ReturnStmt:
			f.returned(n, in)
		case *ast.BranchStmt:
			if n.Tok == token.CONTINUE || n.Tok == token.BREAK {
				f.add(in, jump, n, "", "nothing")
			}
		}
		return true
	})
}

// condition adds the mutants of the whole condition of an if or for. Those of a comparison are
// added where it is found.
func (f *File) condition(e ast.Expr, in scope) {
	b, ok := e.(*ast.BinaryExpr)
	switch {
	case ok && isErrorCheck(b):
		f.add(in, skipped, e, "", "false")
	case !ok || b.Op == token.LAND || b.Op == token.LOR:
		f.add(in, negated, e, "", "!("+f.text(e)+")")
	}
}

// isErrorCheck reports whether an expression is err != nil.
func isErrorCheck(b *ast.BinaryExpr) bool {
	x, ok := b.X.(*ast.Ident)
	y, isNil := b.Y.(*ast.Ident)
	return ok && isNil && b.Op == token.NEQ && y.Name == "nil" && strings.HasSuffix(strings.ToLower(x.Name), "err")
}

var bounds = map[token.Token]token.Token{token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR}

func (f *File) binary(b *ast.BinaryExpr, in scope) {
	x, y := f.text(b.X), f.text(b.Y)
	switch b.Op {
	case token.LSS, token.LEQ, token.GTR, token.GEQ:
		f.add(in, bound, b, x+" "+bounds[b.Op].String()+" "+y, "")
		f.add(in, negated, b, "", "!("+f.text(b)+")")
	case token.EQL:
		f.add(in, negated, b, "", x+" != "+y)
	case token.NEQ:
		f.add(in, negated, b, "", x+" == "+y)
	case token.LAND, token.LOR:
		other := token.LAND
		if b.Op == token.LAND {
			other = token.LOR
		}
		// A chain such as a && b && c is parsed from the left, so parentheses keep its other parts.
		f.add(in, andOr, b, "("+x+") "+other.String()+" ("+y+")", "")
		f.add(in, first, b, x, "")
		f.add(in, second, b, y, "")
	default:
	}
}

func (f *File) returned(r *ast.ReturnStmt, in scope) {
	for _, e := range r.Results {
		if id, ok := e.(*ast.Ident); ok && (id.Name == "true" || id.Name == "false") {
			f.add(in, boolean, id, "", "!"+id.Name)
		}
	}
	if !in.returnsError(len(r.Results)) {
		return
	}
	last := len(r.Results) - 1
	if id, ok := r.Results[last].(*ast.Ident); ok && id.Name == "nil" {
		return
	}
	values := make([]string, 0, len(r.Results))
	for _, e := range r.Results[:last] {
		values = append(values, f.text(e))
	}
	instead := "return " + strings.Join(append(values, "nil"), ", ")
	// What the error is computed from still happens.
	f.add(in, nilError, r, "_ = "+f.text(r.Results[last])+"; "+instead, instead)
}

// add adds a mutant. The description is the text, unless it is given.
func (f *File) add(in scope, k kind, n ast.Node, text, describe string) {
	name := f.Path + ":" + in.name + ":" + string(k)
	f.counted[name]++
	f.Mutants = append(f.Mutants, Mutant{
		Name: fmt.Sprintf("%s:%d", name, f.counted[name]),
		Was:  oneLine(f.text(n)), Is: oneLine(cmp.Or(describe, text)),
		kind: k, node: n, text: text,
	})
}

// text returns the source of a node.
func (f *File) text(n ast.Node) string { return f.source[f.offset(n.Pos()):f.offset(n.End())] }

func (f *File) offset(p token.Pos) int { return f.fset.Position(p).Offset }

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// nameOf returns the name of a function, after the type of its receiver.
func nameOf(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	name := ""
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && name == "" {
			name = id.Name
		}
		return true
	})
	return name + "." + d.Name.Name
}

// Sort sorts mutants by name.
func Sort(all []Mutant) {
	slices.SortFunc(all, func(a, b Mutant) int { return strings.Compare(a.Name, b.Name) })
}
