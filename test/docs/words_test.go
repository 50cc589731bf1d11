package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// retired maps patterns of private words to the established word that replaced them.
var retired = map[string]string{
	`\w*[Dd]esk`:         "admin",
	`[Ss]etbacks?`:       "deferral",
	`[Tt]enures?`:        "epoch, or lease",
	`[Mm]ourn\w*`:        "dead letter",
	`[Cc]ondolence`:      "dead letter",
	`[Pp]unish\w*`:       "failure class",
	`guilt\w*`:           "failure class, or scope",
	`[Mm]ortal\w*`:       "suspect",
	`[Cc]autio(n|us)\w*`: "suspect, or probe",
	`uow`:                "unit of work",
	`longestWish|Wish`:   "retry after",

	`(\w+_)?lanes?(_\w+|[A-Z]\w*)?|\w*Lanes?([A-Z_]\w*)?`:   "shard, or shard worker",
	`(\w+_)?asides?(_\w+|[A-Z]\w*)?|\w*Asides?([A-Z_]\w*)?`: "deferred",
	`\w*[Vv]itals?([A-Z_]\w*)?`:                             "health",
	`\w*[Dd]eadly\w*`:                                       "suspect",
	`letters[A-Z]\w*`:                                       "dead letters",
	`[Hh]eed\w*`:                                            "apply, or follow",
	`[Ww]ho(m)?ever`:                                        "the one who does it",
	`anew`:                                                  "again",
}

// exempt lists texts in which these words have their ordinary meaning, such as the pay desk in the
// worked example, and records that must not change.
var exempt = []string{"examples/admissions/", "test/admissions/", "docs/admissions.md", "docs/DESIGN.md", "docs/reliability/", "test/docs/words_test.go", "docs/moving/from-0.0.md"}

// TestWords checks that no code, page or message uses a retired word.
func TestWords(t *testing.T) {
	t.Parallel()
	list := make([]string, 0, len(retired))
	for word := range retired {
		list = append(list, word)
	}
	words := regexp.MustCompile(`\b(` + strings.Join(list, "|") + `)\b`)
	cmd := exec.CommandContext(t.Context(), "git", "ls-files", "*.go", "*.md", "*.sql", "*.ts", "*.tsx", "*.yaml", "*.yml", "*.sh", "*.txtar", "*.txt", "*.mjs", "*.css", "*.svg", "*.tla")
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
			continue // deleted, but not committed yet
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
