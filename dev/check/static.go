package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// programs lists the programs that tests use besides servers.
func programs(long bool) []string {
	all := []string{"tmux", "prometheus", "chromium", "hugo", "tlc", "kubeconform", "confluent", "pgupgrade"}
	if long {
		all = append(all, "helm", "debezium")
	}
	return all
}

func (r *run) format() error {
	files, err := output(r.dir, "git", "ls-files", "-co", "--exclude-standard", "--deduplicate", "*.go")
	if err != nil {
		return err
	}
	names := slices.DeleteFunc(strings.Fields(files), func(name string) bool {
		_, err := os.Stat(filepath.Join(r.dir, name))
		return err != nil // deleted, and not committed yet
	})
	wrong, err := output(r.dir, "gofmt", append([]string{"-l"}, names...)...)
	if err == nil && wrong != "" {
		err = fmt.Errorf("not formatted, run make fmt:\n%s", wrong)
	}
	return err
}

func (r *run) coreRequiresNothing() error {
	required, err := output(r.dir, "env", "GOWORK=off", "go", "list", "-m", "all")
	if err == nil && strings.Count(required, "\n") > 1 {
		err = fmt.Errorf("the core module may only use the standard library; it requires\n%s", required)
	}
	return err
}

// lint checks all modules at once: the paths of all packages have the same prefix. The full tier runs
// staticcheck alone, because compiling golangci-lint, which includes it, takes minutes.
func (r *run) lint(tier string) error {
	if tier != "full" {
		return r.command(".", "nice", "dev/lint")
	}
	if err := r.command(".", services, "install", "staticcheck", "actionlint"); err != nil {
		return err
	}
	if err := r.command(".", ".services/bin/actionlint"); err != nil {
		return err
	}
	return r.command(".", "nice", ".services/bin/staticcheck", root+"/...")
}

// consolePages builds the console's pages and compares them with the committed ones.
func (r *run) consolePages() error {
	const web = "admin/console/web"
	before, err := fingerprint(filepath.Join(r.dir, web, "dist"))
	if err != nil {
		return err
	}
	for _, args := range [][]string{{"install", "--no-save", "--loglevel", "error"}, {"run", "--silent", "check"}, {"run", "--silent", "build"}} {
		if err := r.command(web, "npm", args...); err != nil {
			return err
		}
	}
	after, err := fingerprint(filepath.Join(r.dir, web, "dist"))
	if err == nil && before != after {
		err = errors.New(web + "/dist was not built from these sources: commit what npm run build has made")
	}
	return err
}

// fingerprint hashes the names and contents of all files in a folder.
func fingerprint(dir string) (string, error) {
	h := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		fmt.Fprintf(h, "%s %d\n%s", path, len(text), text)
		return err
	})
	return string(h.Sum(nil)), err
}
