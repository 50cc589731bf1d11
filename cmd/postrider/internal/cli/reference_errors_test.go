package cli

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/postrider/postrider/internal/docpage"
)

const repository = "../../../../"

// The errors of the Go packages are on the page with their doc comments.
func TestErrorReference(t *testing.T) {
	t.Parallel()
	type found struct{ folder, name, doc string }
	var all []found
	walkGo(t, repository, func(path string, file *ast.File) {
		folder := filepath.ToSlash(filepath.Dir(strings.TrimPrefix(path, repository)))
		// What nobody outside can meet.
		if first, _, _ := strings.Cut(folder, "/"); slices.Contains([]string{"cmd", "test", "examples", "dev"}, first) || strings.HasPrefix(folder, "admin/console") {
			return
		}
		for _, d := range file.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range decl.Specs {
				switch s := s.(type) {
				case *ast.ValueSpec:
					if name := s.Names[0].Name; decl.Tok == token.VAR && regexp.MustCompile(`^Err[A-Z]`).MatchString(name) {
						all = append(all, found{folder, name, cmp.Or(s.Doc.Text(), decl.Doc.Text())})
					}
				case *ast.TypeSpec:
					if name := s.Name.Name; ast.IsExported(name) && strings.HasSuffix(name, "Error") {
						all = append(all, found{folder, "*" + name, cmp.Or(s.Doc.Text(), decl.Doc.Text())})
					}
				}
			}
		}
	})
	slices.SortStableFunc(all, func(a, b found) int { return cmp.Compare(a.folder, b.folder) })
	var b strings.Builder
	folder := ""
	for _, f := range all {
		if f.doc == "" {
			t.Errorf("%s of %s has no doc comment", f.name, f.folder)
		}
		if f.folder != folder {
			title := f.folder
			if title == "." {
				title = "postrider"
			}
			fmt.Fprintf(&b, "\n### %s\n\n| error | meaning |\n|---|---|\n", title)
			folder = f.folder
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", f.name, docCell(meaning(f.name, f.doc)))
	}
	docpage.Check(t, *update, reference+"errors.md", "TestErrorReference, in cmd/postrider/internal/cli", b.String())
}

// walkGo calls f for every Go file below dir that users may import or run.
func walkGo(t *testing.T, dir string, f func(path string, file *ast.File)) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch name := d.Name(); {
		case d.IsDir() && path != dir && (name == "internal" || name == "node_modules" || name == "testdata" || name[0] == '.'):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err == nil {
			f(path, file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// meaning is a doc comment without the name that it begins with.
func meaning(name, doc string) string {
	doc = strings.TrimPrefix(doc, strings.TrimPrefix(name, "*")+" ")
	doc = strings.TrimPrefix(doc, "means that ")
	return strings.ToUpper(doc[:min(1, len(doc))]) + doc[min(1, len(doc)):]
}

// docCell is a doc comment in one cell, its links as code.
func docCell(doc string) string {
	links := regexp.MustCompile(`\[(\*?[A-Za-z.]+)\]`)
	var b strings.Builder
	doc = strings.Join(strings.Fields(doc), " ")
	at := 0
	for _, m := range links.FindAllStringSubmatchIndex(doc, -1) {
		b.WriteString(docpage.Text(doc[at:m[0]]) + "`" + doc[m[2]:m[3]] + "`")
		at = m[1]
	}
	return strings.ReplaceAll(b.String()+docpage.Text(doc[at:]), "|", `\|`)
}

// The classes of errors are on the page as the comments of their constants.
func TestClassReference(t *testing.T) {
	t.Parallel()
	classes := "| class | how to make it | meaning |\n|---|---|---|\n"
	makers := map[string]string{
		"ClassPermanent":   "`postrider.Permanent(err)`",
		"ClassUnavailable": "`postrider.NameUnavailable(err)` for one queue, topic or endpoint, `postrider.Unavailable(err)` for all",
		"ClassUnknown":     "any other error",
	}
	for _, s := range constants(t, repository+"errors.go", "Class") {
		classes += fmt.Sprintf("| `%s` | %s | %s |\n", s.Names[0].Name, makers[s.Names[0].Name], docCell(meaning(s.Names[0].Name, s.Doc.Text())))
	}
	docpage.Check(t, *update, reference+"errors.md", "TestClassReference, in cmd/postrider/internal/cli", classes)
}

// Exit codes are on the page as the comments of their constants.
func TestCodeReference(t *testing.T) {
	t.Parallel()
	codes := "| code | meaning |\n|---|---|\n"
	for _, s := range constants(t, "exit.go", "exit") {
		if s.Comment.Text() == "" {
			t.Errorf("%s has no comment", s.Names[0].Name)
		}
		codes += fmt.Sprintf("| %s | %s |\n", s.Values[0].(*ast.BasicLit).Value, docCell(s.Comment.Text()))
	}
	docpage.Check(t, *update, reference+"errors.md", "TestCodeReference, in cmd/postrider/internal/cli", codes)
}

// constants are those of a file whose names begin with a prefix.
func constants(t *testing.T, path, prefix string) (specs []*ast.ValueSpec) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range file.Decls {
		if decl, ok := d.(*ast.GenDecl); ok && decl.Tok == token.CONST {
			for _, s := range decl.Specs {
				if s := s.(*ast.ValueSpec); strings.HasPrefix(s.Names[0].Name, prefix) {
					specs = append(specs, s)
				}
			}
		}
	}
	return specs
}

// The states that functions of the database raise are on the page.
func TestStateReference(t *testing.T) {
	t.Parallel()
	raise := regexp.MustCompile(`(?s)RAISE EXCEPTION '((?:[^']|'')*)'[^;]*?ERRCODE = '(\w+)'`)
	files, err := filepath.Glob(repository + "store/postgres/sql/*/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatal("there is no SQL", err)
	}
	var rows []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range raise.FindAllStringSubmatch(string(text), -1) {
			rows = append(rows, fmt.Sprintf("| `%s` | %s |\n", m[2], docpage.Cell(strings.ReplaceAll(m[1], "''", "'"))))
		}
	}
	slices.Sort(rows)
	table := "| SQLSTATE | what it says |\n|---|---|\n" + strings.Join(slices.Compact(rows), "")
	docpage.Check(t, *update, reference+"errors.md", "TestStateReference, in cmd/postrider/internal/cli", table)
}

// Every status by which the console says no is on the page, and no other.
func TestStatusReference(t *testing.T) {
	t.Parallel()
	used := make(map[int]bool)
	statuses := func(_ string, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if of, ok := s.X.(*ast.Ident); ok && of.Name == "http" {
				for status := 400; status < 600; status++ {
					if text := http.StatusText(status); text != "" && "Status"+strings.ReplaceAll(text, " ", "") == s.Sel.Name {
						used[status] = true
					}
				}
			}
			return true
		})
	}
	walkGo(t, repository+"admin/console", statuses)
	walkGo(t, repository+"admin/console/internal", statuses)
	page, err := os.ReadFile(reference + "errors.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(page), "\n## HTTP API\n")
	part, _, _ = strings.Cut(part, "\n## ")
	told := make(map[int]bool)
	for _, m := range regexp.MustCompile(`(?m)^\| (\d{3}) \|`).FindAllStringSubmatch(part, -1) {
		status, _ := strconv.Atoi(m[1])
		told[status] = true
	}
	for status := range used {
		if !told[status] {
			t.Errorf("the console answers %d %s, which is not on the page", status, http.StatusText(status))
		}
	}
	for status := range told {
		if !used[status] {
			t.Errorf("the page has %d, which the console never answers", status)
		}
	}
}
