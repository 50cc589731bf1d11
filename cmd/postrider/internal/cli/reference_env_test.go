package cli

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/postrider/postrider/internal/docpage"
	"github.com/postrider/postrider/relay"
)

// The variables that other outboxes have made known are on the page, and so is every other that this program reads.
func TestVariableReference(t *testing.T) {
	t.Parallel()
	rows := "| variable | option | what it is |\n|---|---|---|\n"
	for _, v := range relay.Variables() {
		what := "number"
		switch {
		case v.Option == "":
			rows += fmt.Sprintf("| `%s` | | `false`: `postrider relay` says so and ends with exit code 0 |\n", v.Name)
			continue
		case strings.HasSuffix(v.Name, "_MS"):
			what = "milliseconds"
		case strings.HasSuffix(v.Name, "_SERIES"):
			what = "durations or milliseconds, with commas between them"
		}
		rows += fmt.Sprintf("| `%s` | [`%s`](#feeds-relay) | %s |\n", v.Name, v.Option, what)
	}
	rows += "| `RECONCILE_NAME_CRON` | [`cron`](#reconcilers) | of the reconciler of that name, in capital letters and with `_` for `-` |\n"
	docpage.Check(t, *update, reference+"configuration.md", "TestVariableReference, in cmd/postrider/internal/cli", rows)

	page, err := os.ReadFile(reference + "configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range variablesRead(t, ".") {
		if !bytes.Contains(page, []byte("`"+name+"`")) {
			t.Errorf("the program reads $%s, which is not on the page", name)
		}
	}
}

// variablesRead are the environment variables that sources name where they read them.
func variablesRead(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 1 {
				return true
			}
			f, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || f.Sel.Name != "Getenv" && f.Sel.Name != "LookupEnv" {
				return true
			}
			if text, ok := call.Args[0].(*ast.BasicLit); ok {
				name, _ := strconv.Unquote(text.Value)
				names = append(names, name)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
