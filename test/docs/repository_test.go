package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

var (
	makeLine = regexp.MustCompile(`(?m)^(?:.*&& )?make ([a-z][a-z -]*)`)
	filePath = regexp.MustCompile(`(?m)(?:^|[ '"=@])(?:\./)?((?:cmd|deploy|dev|docs|examples|test)/[A-Za-z0-9_./-]+)`)
)

// inRepository returns an error if a block uses a make target or a file of the repository that does
// not exist.
func inRepository(b block) error {
	makefile, err := os.ReadFile(filepath.Join(top, "Makefile"))
	if err != nil {
		return err
	}
	for _, m := range makeLine.FindAllStringSubmatch(b.text, -1) {
		for target := range strings.FieldsSeq(m[1]) {
			if !strings.Contains("\n"+string(makefile), "\n"+target+":") {
				return fmt.Errorf("make has no target %q", target)
			}
		}
	}
	for _, m := range filePath.FindAllStringSubmatch(b.text, -1) {
		if _, err := os.Stat(filepath.Join(top, m[1])); err != nil {
			return err
		}
	}
	return nil
}
