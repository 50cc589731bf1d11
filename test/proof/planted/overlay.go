package planted

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Overlay writes the changed files to a folder, and their list for go build -overlay. It returns
// the path of the list. The other files, by the path that they replace, are added to the list.
func (b Bug) Overlay(root, folder string, others map[string]string) (path string, err error) {
	root, err = filepath.Abs(root)
	if err != nil {
		return "", err
	}
	texts := make(map[string]string)
	for _, c := range b.Plant {
		if texts[c.File] == "" {
			text, err := os.ReadFile(filepath.Join(root, c.File))
			if err != nil {
				return "", err
			}
			texts[c.File] = string(text)
		}
		if n := strings.Count(texts[c.File], c.Old); n != 1 {
			return "", fmt.Errorf("planted: %s does not fit any more: %s has this text %d times:\n%s", b.ID, c.File, n, c.Old)
		}
		texts[c.File] = strings.Replace(texts[c.File], c.Old, c.New, 1)
	}
	list := struct{ Replace map[string]string }{make(map[string]string)}
	maps.Copy(list.Replace, others)
	for file, text := range texts {
		changed := filepath.Join(folder, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(changed, []byte(text), 0o644); err != nil {
			return "", err
		}
		list.Replace[filepath.Join(root, file)] = changed
	}
	text, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return "", err
	}
	path = filepath.Join(folder, "overlay.json")
	return path, os.WriteFile(path, text, 0o644)
}

// Packages returns the folders of the packages that a bug changes, relative to the root of the
// repository.
func (b Bug) Packages() []string {
	found := make(map[string]bool)
	for _, c := range b.Plant {
		folder := filepath.Dir(c.File)
		if before, _, ok := strings.Cut(c.File, "/sql/"); ok { // embedded by the package above
			folder = before
		}
		found["./"+folder] = true
	}
	return slices.Sorted(maps.Keys(found))
}
