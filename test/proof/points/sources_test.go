package points

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// sources are the files with the statements of relays, inboxes, sagas and replays.
var sources = []string{
	"store.go", "feed.go", "ledger.go", "read.go", "deferred.go", "split.go", "maintain.go", "freeze.go",
	"inbox.go", "inbox_claim.go", "inbox_handle.go", "inbox_retry.go", "driver.go",
	"saga.go", "saga_admin.go", "admin.go", "admin_replay.go",
}

// elsewhere are statements in these files that serve other purposes, by a part of their text.
var elsewhere = map[string]string{
	"@.rebase(":                       "the command that follows a restore",
	"'rebase', NULL":                  "its record",
	"SELECT @.check_home(":            "the home that it gives the ledger",
	"NOT @.at_home()":                 "what it asks before",
	"@.edit(":                         "an operator edits a message",
	"@.reveal(":                       "an operator is shown a message as it is",
	"@.act_on_saga(":                  "an operator decides about a saga",
	"b.order_key, min(b.seq)":         "an operator looks at blocked keys",
	"SELECT json_build_object('name'": "an operator looks at sagas",
	"SELECT g.status, count(*)":       "an operator looks at sagas",
	"@.saga_doc(":                     "an operator looks at a saga",
	"WITH hits AS MATERIALIZED":       "an operator searches by an error",
	"LIMIT 3000":                      "an operator searches by an error",
	"@.read_payloads(":                "payloads larger than those of the scenarios",
}

// assembled maps statements whose text is built at run time to their names, by their text in the
// source.
var assembled = map[string][]string{
	"SELECT ? FROM @.deferred d??":                 {"list what is deferred"},
	"SELECT ?, d.seq FROM ? d? ORDER BY ? LIMIT ?": {"choose from the log", "choose from dead letters"},
}

// beginning matches the beginning of a statement.
var beginning = regexp.MustCompile(`^\s*((SELECT|INSERT|UPDATE|DELETE|WITH) |BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE)`)

// TestSources checks that every statement in the sources is a point of some scenario, so that a new
// statement must be reached.
func TestSources(t *testing.T) {
	want := readList(t)
	found := make(map[string]bool)
	for _, file := range sources {
		for place, text := range texts(t, filepath.Join("..", "..", "..", "store", "postgres", file)) {
			text = blanks.ReplaceAllString(strings.ReplaceAll(text, "@schema@.", "@."), " ")
			if !beginning.MatchString(text) || exempt(text) {
				continue
			}
			found[place] = true
			for _, name := range namesOf(text) {
				if !want.has(name) && name != inDoubt {
					t.Errorf("%s: no scenario reaches %q: %s", place, name, text)
				}
			}
		}
	}
	if len(found) < 40 {
		t.Errorf("only %d statements: are they found?", len(found))
	}
}

// namesOf returns the names of a statement at run time.
func namesOf(text string) []string {
	if names := assembled[text]; names != nil {
		return names
	}
	switch word, _, _ := strings.Cut(strings.ToLower(text), " "); word {
	case "begin":
		return []string{"begin"}
	case "commit", "rollback", "savepoint": // named by what they follow
		return nil
	}
	s, _ := known(text)
	return []string{s.name}
}

func exempt(text string) bool {
	for part := range elsewhere {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

// texts returns the strings of a file, by position. Concatenations are one string, with ? for
// unknown parts.
func texts(t *testing.T, path string) map[string]string {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	ast.Inspect(file, func(n ast.Node) bool {
		e, ok := n.(ast.Expr)
		if !ok {
			return true
		}
		text, ok := joined(e)
		if ok {
			all[files.Position(n.Pos()).String()] = text
		}
		return !ok
	})
	return all
}

// joined returns the text of a literal or of a concatenation.
func joined(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, e.Kind == token.STRING && err == nil
	case *ast.BinaryExpr:
		if e.Op != token.ADD {
			return "", false
		}
		left, one := joined(e.X)
		right, other := joined(e.Y)
		if !one {
			left = "?"
		}
		if !other {
			right = "?"
		}
		return left + right, one || other
	}
	return "", false
}
