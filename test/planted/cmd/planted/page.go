package main

import (
	"errors"
	"fmt"
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

// writePage writes rows to a page. Rows of other bugs stay there.
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
	rows = rows[:0]
	caught := 0
	for _, row := range all {
		rows = append(rows, row)
		if !strings.Contains(row, missed) {
			caught++
		}
	}
	slices.Sort(rows)
	page := fmt.Sprintf("%s%s\n\n%d of %d caught.\n", pageHead, strings.Join(rows, "\n"), caught, len(rows))
	return os.WriteFile(file, []byte(page), 0o644)
}
