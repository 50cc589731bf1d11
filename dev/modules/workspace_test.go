package main

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// small is a repository with three modules, before its first release.
var small = map[string]string{
	"go.work": "go 1.26.0\n\nuse (\n\t.\n\t./cmd\n\t./store\n)\n\n// Why.\nreplace (\n\t" + root + " v0.1.0 => ./\n\t" + root + "/cmd v0.1.0 => ./cmd\n\t" +
		root + "/store v0.1.0 => ./store\n)\n",
	"go.mod":       "module " + root + "\n\ngo 1.26.0\n",
	"core.go":      "package postrider\n",
	"LICENSE":      "do what you like\n",
	"CHANGELOG.md": "# Changelog\n\n## [Unreleased]\n\n- A door.\n",
	"store/go.mod": "module " + root + "/store\n\ngo 1.26.0\n\nrequire " + root + " v0.1.0\n",
	"store/s.go":   "package store\n\nimport _ \"" + root + "\"\n",
	"cmd/go.mod":   "module " + root + "/cmd\n\ngo 1.26.0\n\nrequire (\n\t" + root + " v0.1.0\n\t" + root + "/store v0.1.0\n)\n",
	"cmd/go.sum":   "a.example/a v1.0.0 h1:a=\ngithub.com/zz/z v1.0.0 h1:z=\n",
	chart:          "name: postrider\nversion: 0.1.0\nappVersion: 0.1.0\nkubeVersion: \">=1.27.0-0\"\n",
	"cmd/main.go":  "package main\n\nimport _ \"" + root + "/store\"\n\nfunc main() {}\n",
}

// repository commits files, some of them changed, and returns the folder.
func repository(t *testing.T, changed map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files := maps.Clone(small)
	maps.Copy(files, changed)
	for name, text := range files {
		write(t, filepath.Join(dir, name), text)
	}
	git(t, dir, "init", "-q", "-b", "main")
	git(t, dir, "config", "user.name", "somebody")
	git(t, dir, "config", "user.email", "somebody@example.com")
	commit(t, dir)
	return dir
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func commit(t *testing.T, dir string) {
	t.Helper()
	git(t, dir, "add", "--all")
	git(t, dir, "commit", "-q", "--allow-empty", "-m", "Change something")
}

func TestCheck(t *testing.T) {
	t.Parallel()
	if err := run(repository(t, nil), nil, nil, []string{"check"}); err != nil {
		t.Fatal(err)
	}
	edit := func(name, old, text string) map[string]string {
		if !strings.Contains(small[name], old) {
			t.Fatalf("%s has no %q", name, old)
		}
		return map[string]string{name: strings.Replace(small[name], old, text, 1)}
	}
	for want, changed := range map[string]map[string]string{ // the error, and what was edited
		"cmd/go.mod replaces " + root + "/store":         edit("cmd/go.mod", ")\n", ")\n\nreplace "+root+"/store => ../store\n"),
		"cmd/go.mod replaces a.example/a":                edit("cmd/go.mod", ")\n", ")\n\nreplace a.example/a => b.example/b v1.0.0\n"),
		"store/go.mod requires " + root + " at v0.0.0":   edit("store/go.mod", "v0.1.0", "v0.0.0"),
		"cmd/go.mod requires " + root + "/store at v0.0": edit("cmd/go.mod", "store v0.1.0", "store v0.0.9"),
		"must replace " + root + "/cmd at v0.1.0":        edit("go.work", root+"/cmd v0.1.0", root+"/cmd v0.2.0"),
		"must replace " + root + "/store at v0.1.0":      edit("go.work", "\t"+root+"/store v0.1.0 => ./store\n", ""),
		"must replace " + root + " at one version":       edit("go.work", "\t"+root+" v0.1.0 => ./\n", ""),
		"go.work does not use it":                        edit("go.work", "\t./store\n", ""),
		"go.work replaces a.example/a":                   edit("go.work", "replace (\n", "replace (\n\ta.example/a v1.0.0 => ../a\n"),
		"the module must be " + root + "/cmd":            edit("cmd/go.mod", "module "+root+"/cmd", "module "+root+"/command"),
		"Chart.yaml must have the version v0.1.0":        edit(chart, "appVersion: 0.1.0", "appVersion: 0.0.9"),
		"requires itself":                                edit("store/go.mod", "v0.1.0", "v0.1.0\n\nrequire "+root+"/cmd v0.1.0"),
	} {
		err := run(repository(t, changed), nil, nil, []string{"check"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A release from the first to the second, as a maintainer makes it.
func TestPrepareAndTag(t *testing.T) {
	t.Parallel()
	dir := repository(t, nil)
	try := func(input string, args ...string) (string, error) {
		var out bytes.Buffer
		err := run(dir, strings.NewReader(input), &out, args)
		return out.String(), err
	}
	refused := func(why, input string, args ...string) {
		t.Helper()
		if _, err := try(input, args...); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%v: %v, want %q", args, err, why)
		}
	}
	done := func(input string, args ...string) string {
		t.Helper()
		out, err := try(input, args...)
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return out
	}
	read := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}

	refused("no semantic version", "", "prepare", "0.1")
	refused("usage", "", "prepare")
	refused("unknown option", "", "prepare", "--yes", "v0.1.0")
	refused("no section", "", "tag", "--yes", "v0.1.0")
	write(t, filepath.Join(dir, "note"), "not committed\n")
	refused("commit them first", "", "prepare", "v0.1.0")
	if err := os.Remove(filepath.Join(dir, "note")); err != nil {
		t.Fatal(err)
	}

	out := done("", "prepare", "--dry-run", "v0.1.0")
	if changed := git(t, dir, "status", "--porcelain"); changed != "" || !strings.HasSuffix(out, "  v0.1.0\n  store/v0.1.0\n  cmd/v0.1.0\n") {
		t.Errorf("a dry run changed %q, and printed\n%s", changed, out)
	}

	out = done("", "prepare", "v0.1.0")
	if !strings.Contains(out, "git commit -m 'Release v0.1.0'") || !strings.Contains(read("CHANGELOG.md"), "## [0.1.0] - ") {
		t.Errorf("printed\n%s\nwith the changelog\n%s", out, read("CHANGELOG.md"))
	}
	sums := strings.Split(read("cmd/go.sum"), "\n")
	for i, begin := range []string{"a.example/a v1.0.0 h1:", root + " v0.1.0 h1:", root + " v0.1.0/go.mod h1:", root + "/store v0.1.0 h1:",
		root + "/store v0.1.0/go.mod h1:", "github.com/zz/z v1.0.0 h1:", ""} {
		if !strings.HasPrefix(sums[i], begin) {
			t.Errorf("line %d of go.sum: %q, want %q", i, sums[i], begin)
		}
	}
	commit(t, dir)

	// Hashes are of what is tagged, and of nothing else.
	write(t, filepath.Join(dir, "core.go"), "package postrider // changed\n")
	commit(t, dir)
	refused("other hashes", "", "tag", "--yes", "v0.1.0")
	done("", "prepare", "v0.1.0")
	commit(t, dir)

	refused("nothing was tagged", "n\n", "tag", "v0.1.0")
	refused("nothing was tagged", "", "tag", "v0.1.0")
	out = done("y\n", "tag", "v0.1.0")
	if !strings.Contains(out, "git push origin v0.1.0\n") || !strings.Contains(out, "git push --atomic origin store/v0.1.0 cmd/v0.1.0\n") {
		t.Errorf("printed\n%s", out)
	}
	if tags := strings.Fields(git(t, dir, "tag", "--points-at", "HEAD")); !slices.Equal(tags, []string{"cmd/v0.1.0", "store/v0.1.0", "v0.1.0"}) {
		t.Errorf("tags %v", tags)
	}

	refused("does not come after v0.1.0", "", "prepare", "v0.1.0")
	refused("lists no change", "", "prepare", "v0.2.0")
	write(t, filepath.Join(dir, "CHANGELOG.md"), strings.Replace(read("CHANGELOG.md"), unreleased+"\n", unreleased+"\n\n- A window.\n", 1))
	commit(t, dir)
	done("", "prepare", "v0.2.0")
	if text := read("go.work") + read("store/go.mod") + read("store/go.sum") + read("cmd/go.mod") + read("cmd/go.sum"); strings.Contains(text, "v0.1.0") {
		t.Errorf("v0.1.0 is still in\n%s", text)
	}
	if text, want := read(chart), strings.ReplaceAll(small[chart], "0.1.0", "0.2.0"); text != want {
		t.Errorf("the chart is\n%s\nwant\n%s", text, want)
	}
	if text, want := read("go.work"), strings.ReplaceAll(small["go.work"], "v0.1.0", "v0.2.0"); text != want {
		t.Errorf("go.work is\n%s\nwant\n%s", text, want)
	}
	if err := run(dir, nil, nil, []string{"check", "v0.2.0"}); err != nil {
		t.Error(err)
	}
	if err := run(dir, nil, nil, []string{"check", "v0.1.0"}); err == nil {
		t.Error("what is prepared for v0.2.0 passes for v0.1.0")
	}
}

// The command knows no go.work, and these modules were never published.
func TestTidy(t *testing.T) {
	t.Parallel()
	dir := repository(t, map[string]string{
		"store/go.mod": strings.Split(small["store/go.mod"], "\nrequire")[0],
		"cmd/go.sum":   root + " v0.1.0 h1:kept=\n" + root + " v0.0.1 h1:dropped=\n" + "a.example/a v1.0.0 h1:unused=\n",
	})
	if err := run(dir, nil, nil, []string{"tidy"}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"store/go.mod": small["store/go.mod"], "cmd/go.sum": root + " v0.1.0 h1:kept=\n"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
}
