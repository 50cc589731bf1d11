package docs

import (
	"strings"
	"testing"
)

// TestPlanted checks that wrong blocks are detected, and right ones are accepted.
func TestPlanted(t *testing.T) {
	openDatabase(t)
	for name, c := range map[string]struct {
		note, language, right, wrong string
	}{
		"go":          {"", "go", "package docs", "pack" + "age does not exist"},
		"go left out": {"", "go", "func TestPlanted(…) {\n…\nonly(t, page", "func TestPlanted(…) {\n…\nno such " + "line"},
		"region":      {"snippet: test/docs/doc.go", "go", mustRegion(t, "test/docs/doc.go"), "package docs"},
		"gone":        {"snippet: test/docs/doc.go#gone", "go", "", "package docs"},
		"python":      {"", "python", "", "nothing_like_this()"},
		"typescript":  {"", "typescript", "", "nothingLikeThis()"},
		"java":        {"", "java", "", "nothing.like().thisOne();"},
		"sh":          {"", "sh", "if true; then echo; fi", "if true; echo"},
		"sh runs":     {"run", "sh", "postrider migrate up && postrider migrate status", "postrider statis"},
		"sh with SQL": {"", "sh", `psql "$DATABASE_URL" -c "SELECT postrider.enqueue('a', 'b', 'c', '{\"n\": 1}')"`, `psql -c "SELECT postrider.enqeue()"`},
		"sh target":   {"", "sh", "make check build", "make chek"},
		"sh path":     {"", "sh", "dev/services up nats && cat ./docs/*.md", "cat deploy/nothing.yaml"},
		"console":     {"", "console", "$ psql -c \"SELECT\n  1\"\n ?column?", "$ psql -c \"SELECT\n  FORM\"\n"},
		"sql":         {"", "sql", "SELECT * FROM postrider.message_status;", "SELECT nothing FROM postrider.message_status;"},
		"sql values":  {"", "sql", "SELECT 1;\nSELECT postrider.receive($1, $2);", "SELECT postrider.receive($1, $2, $3, $4);"},
		"yaml":        {"", "yaml", "rule_files: []\nscrape_configs: []", "a: {"},
		"config":      {"", "yaml", "feeds: {a: {destination: jobs}}", "feeds: {a: {destnation: jobs}}"},
		"config map":  {"", "yaml", "apiVersion: v1\nkind: ConfigMap\ndata: {postrider.yaml: 'feeds: {a: {destination: jobs}}'}", "apiVersion: v1\ndata: {postrider.yaml: 'feeds: {a: {x: y}}'}"},
		"stray yaml":  {"yaml: values of a chart", "yaml", "replicas: 1", "replicas: ["},
		"json":        {"", "json", `{"a": "…", …, "b": [1, …], …}`, `{"a": }`},
		"transcript":  {"", "text", "costs $ 7", "$ ls"},
		"no language": {"", "text", "anything", ""},
	} {
		t.Run(name, func(t *testing.T) {
			page := func(language, text string) string {
				above := ""
				if c.note != "" {
					above = "<!-- " + c.note + " -->\n"
				}
				return "# Page\n\n" + above + "```" + language + "\n" + strings.TrimSuffix(text, "\n") + "\n```\n"
			}
			if c.right != "" {
				if err := only(t, page(c.language, c.right)); err != nil {
					t.Errorf("the right block: %v", err)
				}
			}
			language := c.language
			if c.wrong == "" {
				language = "" // the missing language is the mistake
			}
			if err := only(t, page(language, c.wrong)); err == nil {
				t.Errorf("nobody has found\n%s", page(language, c.wrong))
			}
		})
	}
}

// only checks the only block of a page.
func only(t *testing.T, page string) error {
	t.Helper()
	found, mistakes := blocks("page.md", page)
	if len(found) != 1 || len(mistakes) > 0 {
		t.Fatalf("%d blocks, %v in\n%s", len(found), mistakes, page)
	}
	return check(t, found[0])
}

// TestIndented checks that code without a fence is detected, and that lists may be indented.
func TestIndented(t *testing.T) {
	for page, want := range map[string]int{
		"Text\n\n    code\n\n    more code\n":      1,
		"```go\n    code\n":                        1,
		"* item\n\n    of the item\n":              0,
		"1. item\n    goes on\n\n    and on\n":     0,
		"Text\n    goes on\n":                      0,
		"```text\n    code\n```\n":                 0,
		"* item\n\n  ```text\n      code\n  ```\n": 0,
	} {
		if _, mistakes := blocks("page.md", page); len(mistakes) != want {
			t.Errorf("%v, want %d, in\n%s", mistakes, want, page)
		}
	}
}

func mustRegion(t *testing.T, name string) string {
	t.Helper()
	text, err := region(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
