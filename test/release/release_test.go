// Package release publishes what is checked out, to nobody but itself, and then does what users do:
// they install the command, and build programs of their own, far from this repository.
//
// A copy of the checkout is prepared and tagged by dev/release. The go command gets our modules from
// this copy as it gets them from the public repository, by tags and folders; only the address is
// another. The version is one that will never be published, so nothing can come from elsewhere.
package release

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/postrider/postrider/internal/need"
)

const (
	root      = "github.com/postrider/postrider"
	published = "v0.999.0"
)

func TestMain(m *testing.M) {
	code := m.Run()
	for _, dir := range remove {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

var remove []string

func temporary() (string, error) {
	dir, err := os.MkdirTemp("", "postrider-release")
	remove = append(remove, dir)
	return dir, err
}

// repository returns a copy of what is checked out, with what is not committed yet, in which
// dev/release has made a release.
var repository = sync.OnceValues(func() (string, error) {
	dir, err := temporary()
	if err != nil {
		return "", err
	}
	top, err := filepath.Abs("../..")
	if err != nil {
		return "", err
	}
	for _, script := range []string{
		`cd "$TOP" && git ls-files -z -co --exclude-standard --deduplicate | while IFS= read -r -d '' f; do
			if [ -e "$f" ] || [ -L "$f" ]; then printf '%s\0' "$f"; fi; done | tar --null -T - -cf - | tar -C "$DIR" -xf -`,
		`git init -q -b main && git config user.name somebody && git config user.email somebody@example.com`,
		`git add --all && git commit -q -m 'Everything'`,
		`go run ./dev/modules prepare ` + published,
		`git add --all && git commit -q -m 'Release'`,
		`dev/release tag --yes ` + published,
	} {
		cmd := exec.Command("bash", "-c", "set -euo pipefail\n"+script)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "TOP="+top, "DIR="+dir, "GOWORK=")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%s: %w\n%s", script, err, out)
		}
	}
	return dir, nil
})

// A user has an own cache of modules, and finds our repository at its usual address.
type user struct {
	dir string
	env []string
}

func newUser(t *testing.T, repository string) user {
	t.Helper()
	cache, err := caches()
	if err != nil {
		t.Fatal(err)
	}
	u := user{dir: t.TempDir()}
	u.env = append(os.Environ(),
		// With -trimpath, libraries that were compiled in another folder are not compiled again.
		"GOWORK=off", "GOFLAGS=-trimpath -modcacherw", "CGO_ENABLED=0",
		"GOBIN="+filepath.Join(u.dir, "bin"), "GOMODCACHE="+cache.own,
		// Other modules come from the usual cache, or else from where they always come from. Those in
		// the cache were verified when they came.
		"GOPROXY=file://"+cache.usual+"/cache/download,"+cache.proxy, "GOSUMDB=off",
		"GONOPROXY="+root,
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url.file://"+repository+".insteadOf", "GIT_CONFIG_VALUE_0=https://"+root,
	)
	return u
}

// caches are the usual cache of modules, the usual proxies, and a cache that has nothing of ours.
var caches = sync.OnceValues(func() (c struct{ usual, proxy, own string }, err error) {
	out, err := exec.Command("go", "env", "GOMODCACHE", "GOPROXY").Output()
	if err != nil {
		return c, err
	}
	c.usual, c.proxy, _ = strings.Cut(strings.TrimSpace(string(out)), "\n")
	c.own, err = temporary()
	return c, err
})

func (u user) try(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = u.dir, u.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (u user) do(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := u.try(name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

func release(t *testing.T) string {
	t.Helper()
	dir, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// The newest version is the one that was tagged.
func TestInstall(t *testing.T) {
	t.Parallel()
	u := newUser(t, release(t))
	u.do(t, "go", "install", root+"/cmd/postrider@latest")
	if out := u.do(t, filepath.Join(u.dir, "bin/postrider"), "version"); !strings.Contains(out, published) {
		t.Errorf("the installed command is not %s:\n%s", published, out)
	}
}

// program begins a module with the program of README.md.
func program(t *testing.T) user {
	t.Helper()
	page, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, code, ok := strings.Cut(string(page), "```go\npackage main\n")
	code, _, ends := strings.Cut(code, "\n```\n")
	if !ok || !ends {
		t.Fatal("README.md has no program")
	}
	u := newUser(t, release(t))
	if err := os.WriteFile(filepath.Join(u.dir, "main.go"), []byte("package main\n"+code+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	u.do(t, "go", "mod", "init", "app.example/app")
	u.do(t, "go", "get", root+"@latest", root+"/store/postgres@latest", root+"/broker/nats@latest")
	return u
}

// Go chooses the oldest versions that all go.mod files allow together. So what "go get" chooses here
// are the oldest libraries that we claim to work with.
func TestProgram(t *testing.T) {
	t.Parallel()
	u := program(t)
	u.do(t, "go", "build", "-o", "app", ".")
	for _, module := range []string{"", "/store/postgres", "/broker/nats"} {
		if out := u.do(t, "go", "list", "-m", root+module); out != root+module+" "+published+"\n" {
			t.Errorf("the program was built with %q", out)
		}
	}
	// A user of PostgreSQL and NATS downloads nothing of other brokers.
	if out := u.do(t, "go", "list", "-deps", "."); strings.Contains(out, "franz-go") || strings.Contains(out, "go-redis") {
		t.Errorf("the program contains other brokers:\n%s", out)
	}
}

func TestProgramWithTheNewestLibraries(t *testing.T) {
	t.Parallel()
	need.Long(t, "downloads the newest versions of libraries")
	u := program(t)
	u.do(t, "go", "get", "-u", "./...")
	u.do(t, "go", "build", "-o", "app", ".")
}

// The hashes that dev/release has computed are those of what the go command gets, for every module.
func TestHashes(t *testing.T) {
	t.Parallel()
	u := newUser(t, release(t))
	args := []string{"mod", "download", "-json"}
	for _, m := range modules(t) {
		args = append(args, strings.TrimSuffix(root+"/"+m, "/.")+"@"+published)
	}
	got := make(map[string]bool) // lines of go.sum
	for d := json.NewDecoder(strings.NewReader(u.do(t, "go", args...))); ; {
		var m struct{ Path, Version, Sum, GoModSum string }
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		got[m.Path+" "+m.Version+" "+m.Sum], got[m.Path+" "+m.Version+"/go.mod "+m.GoModSum] = true, true
	}
	compared := 0
	for _, m := range modules(t) {
		text, err := os.ReadFile(filepath.Join(release(t), m, "go.sum"))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, root) {
				compared++
				if !got[strings.TrimSpace(line)] {
					t.Errorf("%s/go.sum has another hash: %s", m, line)
				}
			}
		}
	}
	if compared < 2*len(modules(t)) {
		t.Errorf("only %d hashes of our modules", compared)
	}
}

// Outside the workspace a module is built with the others as they were published.
func TestOutsideTheWorkspace(t *testing.T) {
	t.Parallel()
	u := newUser(t, release(t))
	u.dir = filepath.Join(release(t), "store/table")
	u.do(t, "go", "build", "-mod=readonly", "./...")
}

// go.mod and go.sum are what the go command itself would write once everything is published.
func TestTidy(t *testing.T) {
	t.Parallel()
	need.Long(t, "reads the requirements of all libraries and of their tests")
	u := newUser(t, release(t))
	for _, m := range modules(t) {
		u.dir = filepath.Join(release(t), m)
		if out, err := u.try("go", "mod", "tidy", "-diff"); err != nil {
			t.Errorf("%s is not tidy, run make tidy: %v\n%s", m, err, out)
		}
	}
}

// modules lists the folders of all modules.
func modules(t *testing.T) (folders []string) {
	t.Helper()
	out, err := exec.Command("git", "-C", release(t), "tag", "--list", "*"+published).Output()
	if err != nil {
		t.Fatal(err)
	}
	for tag := range strings.Lines(string(out)) {
		folders = append(folders, filepath.Dir(tag))
	}
	return folders
}

// What keeps users from installing is found: by the go command of users here, as it is by
// "dev/release check" before.
func TestBroken(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		module, edit string
		get          string // how users get it
		users, check string // errors
	}{
		"replaced":    {"cmd/postrider", "-replace=" + root + "=../..", "install", "replace directives", "cmd/postrider/go.mod replaces " + root},
		"unpublished": {"broker/nats", "-require=" + root + "@v0.0.0", "get", "unknown revision v0.0.0", "broker/nats/go.mod requires " + root + " at v0.0.0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broken := t.TempDir()
			u := newUser(t, broken)
			u.env = append(u.env, "GOMODCACHE="+t.TempDir()) // its repository has the same address
			at := func(dir string, line ...string) (string, error) {
				cmd := exec.Command(line[0], line[1:]...)
				cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=")
				out, err := cmd.CombinedOutput()
				return string(out), err
			}
			version := "v0.999.1-" + name
			for _, line := range [][]string{
				{"git", "clone", "-q", release(t), "."},
				{"git", "config", "user.name", "somebody"},
				{"git", "config", "user.email", "somebody@example.com"},
				{"go", "mod", "edit", c.edit, c.module + "/go.mod"},
				{"git", "commit", "-q", "-a", "-m", "Break it"},
				{"git", "tag", c.module + "/" + version},
			} {
				if out, err := at(broken, line...); err != nil {
					t.Fatalf("%v: %v\n%s", line, err, out)
				}
			}
			u.do(t, "go", "mod", "init", "app.example/app")
			if out, err := u.try("go", c.get, root+"/"+c.module+"@"+version); err == nil || !strings.Contains(out, c.users) {
				t.Errorf("go %s: %v, want %q\n%s", c.get, err, c.users, out)
			}
			if out, err := at(broken, "dev/release", "check", published); err == nil || !strings.Contains(out, c.check) {
				t.Errorf("dev/release check: %v, want %q\n%s", err, c.check, out)
			}
		})
	}
}
