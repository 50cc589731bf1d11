package main

import (
	"path/filepath"
	"strings"
)

// reads lists what tests read besides the packages that they import: folders and files of the
// repository, and programs that they build. An entry that ends with a slash is a folder.
var reads = map[string][]string{
	root + "/test/docs":                      {""}, // snippets of every file
	root + "/test/api":                       {""}, // the types of every package
	root + "/test/site":                      {"docs/", "README.md", "CHANGELOG.md"},
	root + "/test/start":                     {"docs/", "README.md"},
	root + "/test/deploy":                    {"deploy/", "dev/dist", "dev/tools/", ".devcontainer/", ".github/"},
	root + "/test/alerts":                    {"deploy/"},
	root + "/test/release":                   {"cmd/postrider/", "README.md", "CHANGELOG.md"},
	root + "/test/console":                   {"admin/console/"},
	root + "/test/built":                     {"cmd/postrider/", "examples/admissions/", "test/proof/campaign/"},
	root + "/cmd/postrider/internal/cli":     {"docs/", "deploy/", "README.md"},
	root + "/store/postgres":                 {"docs/"},
	root + "/admin/console":                  {"docs/"},
	root + "/test/proof/model":               {"docs/"},
	root + "/test/proof/planted":             {"relay/", "store/", "inbox/", "broker/"},
	root + "/test/proof/planted/rule":        mutated,
	root + "/test/proof/planted/cmd/mutants": mutated,
	root + "/test/proof/peers/page":          {"docs/"},
	root + "/test/proof/points":              {"store/", "broker/"},
	root + "/examples":                       {"examples/"},
}

// mutated lists what has mutants by rule.
var mutated = []string{"relay/", "inbox/", "saga/", "idempotency/", "reconcile/", "retry/", "store/", "broker/", "admin/"}

// everything lists the files that every check reads: a change to one of them affects all tests.
var everything = []string{"dev/", ".ci/", "go.work", "Makefile", ".golangci.yml"}

// affected returns the packages whose tests a change to these files can break.
func affected(all []pkg, files []string) map[string]bool {
	byPath, byDir := make(map[string]pkg), make(map[string]string)
	for _, p := range all {
		byPath[p.ImportPath] = p
		byDir[p.Dir] = p.ImportPath
	}
	touched := make(map[string]bool) // packages with a changed file
	for _, f := range files {
		if under(f, everything) {
			for _, p := range all {
				touched[p.ImportPath] = true
			}
		}
		if owner, ok := owner(byDir, f); ok {
			touched[owner] = true
		}
		for p, places := range reads {
			if under(f, places) {
				touched[p] = true
			}
		}
	}
	hit := make(map[string]bool)
	for _, p := range all {
		seen := make(map[string]bool)
		var reaches func(path string) bool
		reaches = func(path string) bool {
			if touched[path] {
				return true
			}
			if seen[path] {
				return false
			}
			seen[path] = true
			for _, i := range byPath[path].Imports {
				if reaches(i) {
					return true
				}
			}
			for _, place := range reads[path] {
				if program, ok := byDir[strings.TrimSuffix(place, "/")]; ok && reaches(program) {
					return true
				}
			}
			return false
		}
		found := reaches(p.ImportPath)
		for _, imports := range [][]string{p.TestImports, p.XTestImports} {
			for _, i := range imports {
				found = found || reaches(i)
			}
		}
		hit[p.ImportPath] = found
	}
	return hit
}

// owner returns the package that a file belongs to, as source or as data. The root package owns
// only its own files.
func owner(byDir map[string]string, file string) (string, bool) {
	for dir := filepath.Dir(file); ; dir = filepath.Dir(dir) {
		if path, ok := byDir[dir]; ok && (dir != "." || filepath.Dir(file) == ".") {
			return path, true
		}
		if dir == "." {
			return "", false
		}
	}
}

func under(file string, places []string) bool {
	for _, p := range places {
		if file == p || p == "" || strings.HasSuffix(p, "/") && strings.HasPrefix(file, p) {
			return true
		}
	}
	return false
}
