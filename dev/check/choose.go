package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// choose returns the packages to test: those of the core, which run with the race detector, and the
// others, whose time limits with servers assume that it is off. Packages that take long come first,
// so that none is left over at the end.
func (r *run) choose(tier, since string, before report) (core, others []string, err error) {
	all, err := packages(r.dir)
	if err != nil {
		return nil, nil, err
	}
	hit := func(string) bool { return true }
	if since != "" {
		files, err := r.changed(since)
		if err != nil {
			return nil, nil, err
		}
		set := affected(all, files)
		hit = func(path string) bool { return set[path] }
	}
	for _, p := range all {
		switch {
		case !p.hasTests() || !hit(p.ImportPath):
		case p.Module.Path == root:
			core = append(core, p.ImportPath)
		case tier != "quick" || slices.Contains(quickModules, short(p.Module.Path)):
			others = append(others, p.ImportPath)
		}
	}
	seconds := func(path string) float64 { return before.Packages[path].Seconds }
	for _, some := range [][]string{core, others} {
		slices.SortStableFunc(some, func(a, b string) int { return cmp.Compare(seconds(b), seconds(a)) })
	}
	return core, others, nil
}

// quickModules need only one PostgreSQL and no broker.
var quickModules = []string{"store/postgres", "adapter/telemetry"}

// changed lists the files that differ from a commit, including uncommitted ones.
func (r *run) changed(since string) ([]string, error) {
	if since == "1" {
		base, err := output(r.dir, "git", "rev-parse", "--verify", "--quiet", "@{upstream}")
		if err != nil {
			return nil, fmt.Errorf("this branch follows no other, so name the commit: make check CHANGED=COMMIT")
		}
		since = strings.TrimSpace(base)
	}
	var files []string
	for _, args := range [][]string{{"diff", "--name-only", since, "--"}, {"ls-files", "-o", "--exclude-standard"}} {
		text, err := output(r.dir, "git", args...)
		if err != nil {
			return nil, err
		}
		files = append(files, strings.Fields(text)...)
	}
	return files, nil
}
