package main

import (
	"fmt"
	"strings"
)

const unreleased = "## [Unreleased]"

// released returns a changelog with a section for the version: the one that it has, or else what
// is unreleased.
func released(text, version, date string) (string, error) {
	if hasSection(text, version) {
		return text, nil
	}
	before, after, ok := strings.Cut(text, unreleased+"\n")
	if !ok {
		return "", fmt.Errorf("CHANGELOG.md has neither a section of %s nor %q", version, unreleased)
	}
	notes, _, _ := strings.Cut(after, "\n## ")
	if !strings.Contains(notes, "\n- ") {
		return "", fmt.Errorf("CHANGELOG.md lists no change under %q", unreleased)
	}
	return before + unreleased + "\n\n## [" + strings.TrimPrefix(version, "v") + "] - " + date + "\n" + after, nil
}

func hasSection(text, version string) bool {
	return strings.Contains("\n"+text, "\n## ["+strings.TrimPrefix(version, "v")+"] - ")
}
