package main

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// A version is a semantic version without build metadata, which Go has no use for.
type version struct {
	number     [3]int
	prerelease string // "rc.1" of v1.0.0-rc.1
}

var versions = regexp.MustCompile(`^v(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?$`)

func parseVersion(text string) (version, error) {
	parts := versions.FindStringSubmatch(text)
	if parts == nil {
		return version{}, fmt.Errorf("%q is no semantic version such as v0.1.0 or v1.0.0-rc.1", text)
	}
	v := version{prerelease: parts[4]}
	for i := range v.number {
		v.number[i], _ = strconv.Atoi(parts[i+1]) // at most nine digits
	}
	for part := range strings.SplitSeq(v.prerelease, ".") {
		if len(part) > 1 && part[0] == '0' && numeric(part) {
			return version{}, fmt.Errorf("%q is no semantic version: %s begins with a zero", text, part)
		}
	}
	return v, nil
}

// compare orders versions as semver.org does: a pre-release comes before its release.
func (v version) compare(w version) int {
	for i, n := range v.number {
		if c := cmp.Compare(n, w.number[i]); c != 0 {
			return c
		}
	}
	switch {
	case v.prerelease == w.prerelease:
		return 0
	case v.prerelease == "":
		return 1
	case w.prerelease == "":
		return -1
	}
	a, b := strings.Split(v.prerelease, "."), strings.Split(w.prerelease, ".")
	for i := range min(len(a), len(b)) {
		if c := comparePart(a[i], b[i]); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

// comparePart orders numbers by their value, before all words.
func comparePart(a, b string) int {
	switch {
	case numeric(a) && numeric(b):
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	case numeric(a):
		return -1
	case numeric(b):
		return 1
	}
	return cmp.Compare(a, b)
}

func numeric(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// following checks that a version may follow the tags of earlier ones.
func following(text string, tags []string) error {
	v, err := parseVersion(text)
	if err != nil {
		return err
	}
	if v.number[0] > 1 {
		return fmt.Errorf("%s: from v2 on the paths of all modules must end with the major version", text)
	}
	for _, tag := range tags {
		if w, err := parseVersion(tag); err == nil && v.compare(w) <= 0 {
			return fmt.Errorf("%s does not come after %s, which was released", text, tag)
		}
	}
	return nil
}
