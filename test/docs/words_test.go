package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// retired are words that the project once had for what the field has a word for, which is the one to use.
var retired = map[string]string{
	`\w*[Dd]esk`:       "admin",
	`[Ss]etbacks?`:     "deferral",
	`[Tt]enures?`:      "epoch, or lease",
	`[Mm]ourn\w*`:      "dead letter",
	`[Cc]ondolence`:    "dead letter",
	`[Pp]unish\w*`:     "failure class",
	`guilt\w*`:         "failure class, or scope",
	`uow`:              "unit of work",
	`longestWish|Wish`: "retry after",
}

// exempt are texts of other things: a company's pay desk in the worked example, and records that are not to be changed.
var exempt = []string{"examples/admissions/", "test/admissions/", "docs/admissions.md", "docs/DESIGN.md", "docs/reliability/", "test/docs/words_test.go", "docs/moving/from-0.0.md"}

// TestWords finds words in code, docs and texts that were replaced by those of the field.
func TestWords(t *testing.T) {
	t.Parallel()
	list := make([]string, 0, len(retired))
	for word := range retired {
		list = append(list, word)
	}
	words := regexp.MustCompile(`\b(` + strings.Join(list, "|") + `)\b`)
	cmd := exec.CommandContext(t.Context(), "git", "ls-files", "*.go", "*.md", "*.sql", "*.ts", "*.tsx", "*.yaml", "*.yml", "*.sh", "*.txtar")
	cmd.Dir = top
	files, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for file := range strings.Lines(string(files)) {
		file = strings.TrimSpace(file)
		if isExempt(file) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(top, file))
		if os.IsNotExist(err) {
			continue // it is about to be removed
		}
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			if word := words.FindString(line); word != "" {
				t.Errorf("%s:%d: %q: use another word: %s", file, i+1, word, instead(word))
			}
		}
	}
}

func isExempt(file string) bool {
	for _, prefix := range exempt {
		if strings.HasPrefix(file, prefix) {
			return true
		}
	}
	return false
}

func instead(word string) string {
	for pattern, use := range retired {
		if regexp.MustCompile(`^(` + pattern + `)$`).MatchString(word) {
			return use
		}
	}
	return ""
}
