package deploy_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const github = root + "/.github"

// strictly decodes YAML into v, and accepts no key that v has no field for.
func strictly(t *testing.T, path string, v any) {
	t.Helper()
	d := yaml.NewDecoder(strings.NewReader(read(t, path)))
	d.KnownFields(true)
	if err := d.Decode(v); err != nil {
		t.Errorf("%s: %v", path, err)
	}
}

// TestIssueForms checks what GitHub requires of issue forms. It shows a form that breaks these rules
// as an error, to those who want to report something.
func TestIssueForms(t *testing.T) {
	t.Parallel()
	forms, err := filepath.Glob(github + "/ISSUE_TEMPLATE/*.yml")
	if err != nil || len(forms) < 2 {
		t.Fatalf("only %q, %v", forms, err)
	}
	id := regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	for _, path := range forms {
		if filepath.Base(path) == "config.yml" {
			continue
		}
		var form struct {
			Name, Description, Title string
			Labels                   []string
			Body                     []struct {
				Type, ID    string
				Attributes  struct{ Label, Description, Placeholder, Value, Render string }
				Validations struct{ Required bool }
			}
		}
		strictly(t, path, &form)
		if form.Name == "" || form.Description == "" {
			t.Errorf("%s needs a name and a description", path)
		}
		seen, fields := make(map[string]bool), 0
		for i, field := range form.Body {
			a := field.Attributes
			switch field.Type {
			case "markdown":
				if a.Value == "" {
					t.Errorf("%s: text %d has no value", path, i)
				}
				continue
			case "input", "textarea":
			default: // dropdown and checkboxes have attributes of their own
				t.Errorf("%s: the test knows no type %q", path, field.Type)
			}
			fields++
			if a.Label == "" || !id.MatchString(field.ID) || seen[field.ID] || seen[a.Label] {
				t.Errorf("%s: field %d needs a label and an id that no other has: %+v", path, i, field)
			}
			if a.Render != "" && field.Type != "textarea" {
				t.Errorf("%s: only a textarea has render, not %s", path, field.ID)
			}
			seen[field.ID], seen[a.Label] = true, true
		}
		if fields == 0 {
			t.Errorf("%s asks for nothing", path)
		}
	}
	var chooser struct {
		Blank    bool                                `yaml:"blank_issues_enabled"`
		Contacts []struct{ Name, URL, About string } `yaml:"contact_links"`
	}
	strictly(t, github+"/ISSUE_TEMPLATE/config.yml", &chooser)
	for _, c := range chooser.Contacts {
		if c.Name == "" || c.About == "" || !strings.HasPrefix(c.URL, "https://") {
			t.Errorf("a link needs a name, an address and what it is about: %+v", c)
		}
	}
}

// TestActionsArePinned checks that workflows run no action that somebody can change afterwards.
func TestActionsArePinned(t *testing.T) {
	t.Parallel()
	workflows, err := filepath.Glob(github + "/workflows/*.yml")
	if err != nil || len(workflows) == 0 {
		t.Fatalf("no workflows: %v", err)
	}
	pinned := regexp.MustCompile(`^[a-z]+/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	digests := make(map[string]string)
	for _, path := range workflows {
		for _, m := range regexp.MustCompile(`(?m)uses: *(.*)$`).FindAllStringSubmatch(read(t, path), -1) {
			action, _, _ := strings.Cut(m[1], "@")
			if !pinned.MatchString(m[1]) {
				t.Errorf("%s: %q is not ACTION@DIGEST # VERSION", path, m[1])
			} else if other, ok := digests[action]; ok && other != m[1] {
				t.Errorf("%s: %s, elsewhere %s", path, m[1], other)
			}
			digests[action] = m[1]
		}
	}
}

// TestGitHubNamesWhatExists checks that the scripts, targets of make and commands of postrider that
// workflows and forms name exist, and the folders that Dependabot looks at.
func TestGitHubNamesWhatExists(t *testing.T) {
	binary := program(t)
	makefile := read(t, root+"/Makefile")
	script := regexp.MustCompile(`(?:^|[\s"=])((?:dev|deploy|\.ci)/[A-Za-z0-9/_.-]+)`)
	target := regexp.MustCompile("(?:`|run: )make ([a-z-]+)")
	command := regexp.MustCompile(`\bpostrider ([a-z]+)`)
	found := make(map[string]int)
	err := filepath.WalkDir(github, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text := read(t, path)
		for _, m := range script.FindAllStringSubmatch(text, -1) {
			found["scripts"]++
			if _, err := exec.LookPath(filepath.Join(root, m[1])); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
		for _, m := range target.FindAllStringSubmatch(text, -1) {
			found["targets"]++
			if !strings.Contains(makefile, "\n"+m[1]+":") {
				t.Errorf("%s: make has no target %s", path, m[1])
			}
		}
		if strings.Contains(path, "ISSUE_TEMPLATE") {
			for _, m := range command.FindAllStringSubmatch(text, -1) {
				found["commands"]++
				run(t, binary, m[1], "--help")
			}
		}
		return nil
	})
	if err != nil || len(found) != 3 {
		t.Errorf("found %v, %v", found, err)
	}

	var dependabot struct {
		Version int
		Updates []struct {
			Ecosystem   string `yaml:"package-ecosystem"`
			Directory   string
			Directories []string
			Schedule    struct{ Interval string }
			Groups      map[string]struct{ Patterns []string }
			Ignore      []struct {
				Dependency string `yaml:"dependency-name"`
			}
		}
	}
	strictly(t, github+"/dependabot.yml", &dependabot)
	if dependabot.Version != 2 || len(dependabot.Updates) == 0 {
		t.Errorf("dependabot.yml: %+v", dependabot)
	}
	for _, u := range dependabot.Updates {
		if u.Ecosystem == "" || u.Schedule.Interval == "" || (u.Directory == "") == (len(u.Directories) == 0) {
			t.Errorf("dependabot.yml: incomplete: %+v", u)
		}
		for _, dir := range append(u.Directories, u.Directory) {
			if info, err := os.Stat(filepath.Join(root, strings.ReplaceAll(dir, "*", "."))); err != nil || !info.IsDir() {
				t.Errorf("dependabot.yml: no folder %s: %v", dir, err)
			}
		}
	}
}
