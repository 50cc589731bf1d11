package rule

import (
	"cmp"
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

const (
	// EnvOn names the mutant that is on, by its number in hexadecimal; without it none is.
	EnvOn = "POSTRIDER_MUTANT"
	// EnvReached names a file, to which the number of every mutant that is reached is added.
	EnvReached = "POSTRIDER_MUTANTS_REACHED"
)

// Switch returns the source file that a package with mutants needs in addition.
func Switch(pkg string) string { return "package " + pkg + "\n" + strings.TrimPrefix(switchBody, "\n") }

const switchBody = `
import (
	mutantfmt "fmt"
	mutantos "os"
	mutantstrconv "strconv"
	mutantsync "sync"
	mutantatomic "sync/atomic"
)

var (
	mutantChosen, _  = mutantstrconv.ParseUint(mutantos.Getenv("` + EnvOn + `"), 16, 32)
	mutantReached, _ = mutantos.OpenFile(mutantos.Getenv("` + EnvReached + `"), mutantos.O_APPEND|mutantos.O_WRONLY, 0)
	mutantsSeen      mutantsync.Map
	mutantsRecent    [1 << 14]mutantatomic.Uint32 // most of those seen: conditions are evaluated often
)

// mutantOn reports whether a mutant is on.
func mutantOn(n uint32) bool {
	if recent := &mutantsRecent[n%uint32(len(mutantsRecent))]; mutantReached != nil && recent.Load() != n {
		recent.CompareAndSwap(0, n)
		if _, seen := mutantsSeen.LoadOrStore(n, true); !seen {
			mutantfmt.Fprintf(mutantReached, "%08x\n", n)
		}
	}
	return n == uint32(mutantChosen)
}
`

// Rewrite returns the file with all its mutants. It behaves as before unless one is on.
func (f *File) Rewrite() string {
	byNode := make(map[ast.Node][]Mutant)
	for _, m := range f.Mutants {
		byNode[m.node] = append(byNode[m.node], m)
	}
	nodes := make([]ast.Node, 0, len(byNode))
	for n := range byNode {
		nodes = append(nodes, n)
	}
	// The outer node comes before those in it.
	slices.SortFunc(nodes, func(a, b ast.Node) int {
		return cmp.Or(cmp.Compare(a.Pos(), b.Pos()), cmp.Compare(b.End(), a.End()))
	})
	text, _ := f.render(0, len(f.source), nodes, byNode)
	return text
}

// render returns the source between two offsets with the mutants of the given nodes, and the nodes
// that begin later.
func (f *File) render(from, to int, nodes []ast.Node, mutants map[ast.Node][]Mutant) (text string, rest []ast.Node) {
	var b strings.Builder
	for len(nodes) > 0 && f.offset(nodes[0].Pos()) < to {
		n := nodes[0]
		b.WriteString(f.source[from:f.offset(n.Pos())])
		var inner string
		inner, nodes = f.render(f.offset(n.Pos()), f.offset(n.End()), nodes[1:], mutants)
		for _, m := range mutants[n] {
			inner = m.around(inner)
		}
		b.WriteString(inner)
		from = f.offset(n.End())
	}
	b.WriteString(f.source[from:to])
	return b.String(), nodes
}

// around puts a mutant around the text of its node, which may contain others.
func (m Mutant) around(inner string) string {
	on := fmt.Sprintf("mutantOn(0x%08x)", m.On())
	switch m.kind {
	case negated, boolean:
		return "((" + inner + ") != " + on + ")"
	case skipped:
		return "((" + inner + ") && !" + on + ")"
	case nilError:
		return "if " + on + " { " + m.text + " }\n" + inner
	case jump:
		return "if !" + on + " { " + inner + " }"
	default: // bound, andOr, first, second
		return "(" + on + " && (" + m.text + ") || !" + on + " && (" + inner + "))"
	}
}
