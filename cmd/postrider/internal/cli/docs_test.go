package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider/store/postgres/pgtest"
)

// TestDocs holds that every command line of every page is one: in blocks of sh, behind "$ " in transcripts, and in the
// middle of text. Those that do no harm are run, so that the values of their flags are judged too.
func TestDocs(t *testing.T) {
	c := newCLI(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES15"))
	c.must("migrate", "up")
	lines := documented(t, "../../../..")
	if len(lines) < 100 {
		t.Fatalf("only %d command lines", len(lines))
	}
	t.Chdir(t.TempDir())
	for _, line := range lines {
		cmd, err := parseLine(line.words, line.inText)
		if err != nil {
			t.Errorf("%s: %s\n%v", line.page, line, err)
			continue
		}
		if line.inText {
			continue // it may leave out arguments
		}
		if args, ok := harmless(t, cmd, line.words); ok {
			if r := c.run(args...); r.code == exitUsage {
				t.Errorf("%s: %s\n%s", line.page, line, r.err)
			}
		}
	}
}

func TestDocsFindMistakes(t *testing.T) {
	t.Parallel()
	for text, right := range map[string]bool{
		"postrider status": true, "postrider statis": false, "postrider": false, "postrider dead": false,
		"postrider dead ls --feed default | wc -l": true, "postrider dead ls --fed default": false,
		"X=1 bin/postrider dead show ID  # look": true, "postrider dead show": false, "postrider status now": false,
		"psql \"$(postrider dev url)\"": true, "psql \"$(postrider dead lz)\"": false,
		"postrider dead discard ID \\\n  --reason 'it''s gone'": true, "true && postrider relay --batch many": false,
		"postrider relay --to … &": true, "echo postrider statis": true,
		"postrider relay --to kafka://localhost --set sasl=plain": true, "postrider relay --to kafka://localhost --set sals=plain": false,
	} {
		ok := true
		for _, words := range commandsOf(text) {
			if _, err := parseLine(words, false); err != nil {
				ok = false
			}
		}
		if ok != right {
			t.Errorf("%s: right is %v", text, ok)
		}
	}
}

// line is a command line of a page, without the name of the program.
type line struct {
	page   string
	words  []string
	inText bool // in a sentence or a table
}

func (l line) String() string { return "postrider " + strings.Join(l.words, " ") }

var inline = regexp.MustCompile("`((?:bin/)?postrider [^`\n]+)`")

// documented collects the command lines of all pages, each once.
func documented(t *testing.T, top string) []line {
	t.Helper()
	var lines []line
	seen := make(map[string]bool)
	add := func(page, text string, inText bool) {
		for _, words := range commandsOf(text) {
			l := line{page, words, inText}
			if !seen[l.String()] {
				seen[l.String()] = true
				lines = append(lines, l)
			}
		}
	}
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		name := d.Name()
		if err != nil {
			return err
		}
		if d.IsDir() && path != top && (strings.HasPrefix(name, ".") || slices.Contains([]string{"node_modules", "testdata", "themes", "public", "dist"}, name)) {
			return fs.SkipDir
		}
		if !strings.HasSuffix(name, ".md") || name == "CHANGELOG.md" { // which tells of what there was
			return nil
		}
		page, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		fenced := "" // the language of the block that we are in
		var block strings.Builder
		for text := range strings.Lines(string(page)) {
			language, isFence := strings.CutPrefix(strings.TrimSpace(text), "```")
			switch {
			case isFence && fenced == "":
				fenced = language + " block"
				block.Reset()
			case isFence:
				add(path, block.String(), false)
				fenced = ""
			case fenced == "sh block":
				block.WriteString(text)
			case fenced == "console block":
				command, isCommand := strings.CutPrefix(text, "$ ")
				if isCommand {
					block.WriteString(command)
				}
			case fenced == "":
				for _, m := range inline.FindAllStringSubmatch(text, -1) {
					command := strings.ReplaceAll(m[1], `\|`, "|") // as tables have to write it
					before, after, several := strings.Cut(command, "|")
					if !several {
						add(path, command, true)
						continue
					}
					// "dead ls|show --feed x" is short for two lines.
					group := before[:strings.LastIndexByte(before, ' ')+1]
					choices, flags, _ := strings.Cut(before[len(group):]+"|"+after, " ")
					for _, choice := range strings.Split(choices, "|") {
						add(path, group+choice+" "+flags, true)
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// reading are commands that change nothing.
var reading = []string{
	"status", "messages ls", "messages show", "dead ls", "dead show", "keys blocked", "feeds ls", "replay ls", "replay show", "saga ls", "saga show",
	"audit ls", "config validate", "config show", "config schema", "brokers", "version", "migrate status", "migrate print",
}

// harmless returns a command line as it can be run here, if it can. Files that it names are made.
func harmless(t *testing.T, cmd *cobra.Command, words []string) ([]string, bool) {
	t.Helper()
	_, name, _ := strings.Cut(cmd.CommandPath(), " ")
	dry := cmd.Flags().Lookup("dry-run") != nil
	if !dry && !slices.Contains(reading, name) || name == "dead edit" && !slices.Contains(words, "--payload") || slices.Contains(words, "…") ||
		slices.Contains(words, "--database") || name == "status" && slices.Contains(words, "--all") { // of a file that is not here
		return nil, false
	}
	args := slices.Clone(words)
	for i, word := range args {
		word = strings.TrimPrefix(word, "@")
		switch {
		case word == "ID":
			args[i] = "0199f1a2-0000-7000-8000-000000000001"
		case strings.HasPrefix(word, "/"):
			return nil, false
		case strings.HasSuffix(word, ".yaml"), strings.HasSuffix(word, ".json"):
			content := "{}"
			if strings.HasSuffix(word, ".yaml") {
				content = smallConfig + "reconcilers: {enrollments: {query: 'SELECT 1 AS id', type: a, dedup_key: 'a:{id}'}}\n"
			}
			if err := os.MkdirAll(filepath.Dir(word), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(word, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if dry {
		args = append(args, "--dry-run")
	}
	return args, true
}
