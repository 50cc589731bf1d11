package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

const missed = "**missed**"

const pageHead = `# Known bugs, planted

Systems of this kind have been shipped with each of these mistakes. One at a time, they are put into our sources while they are compiled; then a short
[fault campaign](README.md) has to notice, and the same campaign without the bug has to find nothing. ` + "`make planted`" + ` does it again,
` + "`make planted BUGS=\"F09 F10\"`" + ` for some of them.

| bug | what it does | campaign | caught by | seconds |
|---|---|---|---|---|
`

// writePage writes rows to a page. Rows of other bugs are kept.
func writePage(file string, rows []string) error {
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	all := map[string]string{}
	for _, row := range append(strings.Split(string(text), "\n"), rows...) {
		if strings.HasPrefix(row, "| F") {
			all[row[:5]] = row
		}
	}
	table := strings.Join(slices.Sorted(maps.Values(all)), "\n")
	page := fmt.Sprintf("%s%s\n\n%d of %d caught.\n", pageHead, table, len(all)-strings.Count(table, missed), len(all))
	return os.WriteFile(file, []byte(page), 0o644)
}
