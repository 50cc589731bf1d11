package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The go.sum of a module has the hashes of those of our modules that it requires, or else it could
// not be built outside the workspace. They are computed here, before anything is published, in the
// order of dependency, because a go.sum is part of its module. test/release compares them with
// those of the go command.

// sums computes the go.sum of every module, by folder. Modules that require none of ours have none
// here.
func (w workspace) sums(version string) (map[string]string, error) {
	tracked, err := w.files()
	if err != nil {
		return nil, err
	}
	out := make(map[string]string)
	lines := make(map[string][]string) // by path of a module
	for _, m := range w.modules {
		name := filepath.ToSlash(filepath.Join(m.Dir, "go.sum"))
		if len(m.Requires) > 0 {
			old, err := os.ReadFile(filepath.Join(w.dir, name))
			if err != nil && !os.IsNotExist(err) {
				return nil, err
			}
			var own []string
			for _, path := range slices.Sorted(maps.Keys(m.Requires)) {
				own = append(own, lines[path]...)
			}
			out[m.Dir] = mergeSums(string(old), own)
			if !slices.Contains(tracked, name) { // its first
				tracked = append(tracked, name)
			}
		}
		read := func(file string) ([]byte, error) {
			if text, ok := out[m.Dir]; ok && file == name {
				return []byte(text), nil
			}
			return os.ReadFile(filepath.Join(w.dir, file))
		}
		if lines[m.Path], err = hashModule(m, version, tracked, read); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// files lists the regular files of the repository that are not ignored; a go.sum that is new too.
func (w workspace) files() ([]string, error) {
	text, err := output(w.dir, nil, "git", "ls-files", "-z", "-co", "--exclude-standard", "--deduplicate")
	if err != nil {
		return nil, err
	}
	var out []string
	for name := range strings.SplitSeq(strings.TrimSuffix(text, "\x00"), "\x00") {
		info, err := os.Lstat(filepath.Join(w.dir, name))
		if err != nil {
			return nil, err
		}
		if info.Mode().IsRegular() { // archives of modules have no symbolic links
			out = append(out, name)
		}
	}
	return out, nil
}

// hashModule returns the two lines of go.sum for a module: of the archive that the go command would
// make of the files, and of its go.mod.
func hashModule(m module, version string, files []string, read func(string) ([]byte, error)) ([]string, error) {
	prefix := m.Path + "@" + version + "/"
	archive := make(map[string][]byte)
	for _, file := range archived(m.Dir, files) {
		text, err := read(file)
		if err != nil {
			return nil, err
		}
		archive[prefix+strings.TrimPrefix(file, strings.TrimPrefix(m.Dir+"/", "./"))] = text
	}
	// A module in a folder gets the license of the repository, unless it has one of its own.
	if _, ok := archive[prefix+"LICENSE"]; !ok && slices.Contains(files, "LICENSE") {
		text, err := read("LICENSE")
		if err != nil {
			return nil, err
		}
		archive[prefix+"LICENSE"] = text
	}
	return []string{
		m.Path + " " + version + " " + hash1(archive),
		m.Path + " " + version + "/go.mod " + hash1(map[string][]byte{"go.mod": archive[prefix+"go.mod"]}),
	}, nil
}

// archived chooses the files of the module in a folder: all below it, except for those of other
// modules and of vendored packages.
func archived(dir string, files []string) (own []string) {
	var others []string // folders of modules in the folder
	for _, f := range files {
		if within, name := filepath.Split(f); name == "go.mod" && within != "" && under(within, dir) && strings.TrimSuffix(within, "/") != dir {
			others = append(others, strings.TrimSuffix(within, "/"))
		}
	}
	for _, f := range files {
		elsewhere := slices.ContainsFunc(others, func(o string) bool { return under(f, o) })
		if under(f, dir) && !elsewhere && !strings.Contains("/"+f, "/vendor/") {
			own = append(own, f)
		}
	}
	return own
}

func under(file, dir string) bool { return dir == "." || strings.HasPrefix(file, dir+"/") }

// hash1 is the hash "h1:" of the go command: of the names of the files and their hashes.
func hash1(files map[string][]byte) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(h, "%x  %s\n", sha256.Sum256(files[name]), name)
	}
	return "h1:" + base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// mergeSums puts the lines of our modules in the place of those that a go.sum has.
func mergeSums(old string, own []string) string {
	lines := slices.DeleteFunc(strings.SplitAfter(old, "\n"), func(l string) bool { return l == "" || ours(sumPath(l)) })
	for _, l := range own {
		lines = append(lines, l+"\n")
	}
	slices.SortStableFunc(lines, func(a, b string) int { return cmp.Compare(sumPath(a), sumPath(b)) })
	return strings.Join(lines, "")
}

func sumPath(line string) string {
	path, _, _ := strings.Cut(line, " ")
	return path
}
