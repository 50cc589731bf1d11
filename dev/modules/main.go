// Command modules keeps the modules of go.work in step, and prepares their releases.
//
//	modules check                        users can get every module, as it is required here
//	modules check VERSION                what is checked out can be published as this version
//	modules tidy [FOLDER …]              go mod tidy, with our modules as they are here
//	modules prepare [--dry-run] VERSION  write a version into CHANGELOG.md, Chart.yaml, go.work, go.mod and go.sum
//	modules tag [--yes] VERSION          tag every module
//
// It pushes nothing. CONTRIBUTING.md has the steps of a release.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

func main() {
	dir, err := output(".", nil, "git", "rev-parse", "--show-toplevel")
	if err == nil {
		err = run(strings.TrimSpace(dir), os.Stdin, os.Stdout, os.Args[1:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: modules check [VERSION] | tidy [FOLDER …] | prepare [--dry-run] VERSION | tag [--yes] VERSION")

func run(dir string, in io.Reader, out io.Writer, args []string) error {
	flags := make(map[string]bool)
	args = slices.DeleteFunc(args, func(a string) bool {
		flags[a] = strings.HasPrefix(a, "--")
		return flags[a]
	})
	if len(args) == 0 {
		return errUsage
	}
	command, rest := args[0], args[1:]
	for flag, is := range flags {
		if is && (command != "prepare" || flag != "--dry-run") && (command != "tag" || flag != "--yes") {
			return fmt.Errorf("unknown option %s; %w", flag, errUsage)
		}
	}
	w, err := load(dir)
	switch {
	case err != nil:
		return err
	case command == "check" && len(rest) == 0:
		return w.check(w.version())
	case command == "check" && len(rest) == 1:
		return w.prepared(rest[0])
	case command == "tidy":
		return w.tidy(rest)
	case command == "prepare" && len(rest) == 1:
		return w.prepare(out, rest[0], flags["--dry-run"])
	case command == "tag" && len(rest) == 1:
		return w.tag(in, out, rest[0], flags["--yes"])
	}
	return errUsage
}

// prepare writes a version into all files that name it.
func (w workspace) prepare(out io.Writer, version string, dry bool) error {
	if err := w.mayFollow(version); err != nil {
		return err
	}
	changes, err := w.read("CHANGELOG.md")
	if err != nil {
		return err
	}
	if changes, err = released(changes, version, time.Now().UTC().Format(time.DateOnly)); err != nil {
		return err
	}
	described, err := w.read(chart)
	if err != nil {
		return err
	}
	if !dry {
		if err := errors.Join(w.write("CHANGELOG.md", changes), w.write(chart, charted(described, version))); err != nil {
			return err
		}
		if err := w.require(version); err != nil {
			return err
		}
		// The changelog is part of the core, so hashes come last.
		if w, err = load(w.dir); err != nil {
			return err
		}
		sums, err := w.sums(version)
		if err != nil {
			return err
		}
		for folder, text := range sums {
			if err := w.write(folder+"/go.sum", text); err != nil {
				return err
			}
		}
		if err := w.prepared(version); err != nil {
			return err
		}
		fmt.Fprintf(out, "CHANGELOG.md, the chart, go.work, go.mod and go.sum are written for %s. Look at them: git diff\n\n", version)
	}
	fmt.Fprintf(out, "To commit, and after the merge, on the commit of main:\n  git add --all && git commit -m 'Release %s'\n  dev/release tag %s\n\n", version, version)
	fmt.Fprintf(out, "Any other change needs a new \"prepare\", because the hashes in go.sum are those of these files. The tags will be:\n")
	for _, t := range w.tags(version) {
		fmt.Fprintf(out, "  %s\n", t)
	}
	return nil
}

// tag makes the tags of a version that was prepared.
func (w workspace) tag(in io.Reader, out io.Writer, version string, yes bool) error {
	if err := w.mayFollow(version); err != nil {
		return err
	}
	if err := w.prepared(version); err != nil {
		return err
	}
	tags := w.tags(version)
	existing, err := output(w.dir, nil, "git", append([]string{"tag", "--list"}, tags...)...)
	if err != nil {
		return err
	}
	if existing != "" {
		return fmt.Errorf("these tags exist:\n%s", existing)
	}
	commit, err := output(w.dir, nil, "git", "log", "-1", "--format=%h %s")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s\n%d tags of %s", strings.Join(tags, "\n"), len(tags), commit)
	if !yes {
		fmt.Fprint(out, "Make them? [y/N] ")
		answer, _ := bufio.NewReader(in).ReadString('\n')
		if strings.TrimSpace(answer) != "y" {
			return errors.New("nothing was tagged")
		}
	}
	for _, t := range tags {
		if _, err := output(w.dir, nil, "git", "tag", "-a", "-m", t, t); err != nil {
			return err
		}
	}
	// GitHub starts no workflow for a push of more than three tags.
	fmt.Fprintf(out, "\nTo publish, the core first; its tag alone starts the release:\n  git push origin %s\n  git push --atomic origin %s\n", tags[0], strings.Join(tags[1:], " "))
	return nil
}

// tags lists the tags of a version in the order in which to publish them.
func (w workspace) tags(version string) (all []string) {
	for _, m := range w.modules {
		all = append(all, m.tag(version))
	}
	return all
}

// mayFollow checks that a version is a new one, and that the repository has nothing uncommitted.
func (w workspace) mayFollow(version string) error {
	tags, err := output(w.dir, nil, "git", "tag", "--list", "v*")
	if err != nil {
		return err
	}
	if err := following(version, strings.Fields(tags)); err != nil {
		return err
	}
	changed, err := output(w.dir, nil, "git", "status", "--porcelain")
	if err == nil && changed != "" {
		err = fmt.Errorf("the release would not have these changes; commit them first:\n%s", changed)
	}
	return err
}

// prepared checks that the files are those that "prepare" writes for a version.
func (w workspace) prepared(version string) error {
	if err := w.check(version); err != nil {
		return err
	}
	changes, err := w.read("CHANGELOG.md")
	if err != nil {
		return err
	}
	if !hasSection(changes, version) {
		return fmt.Errorf("CHANGELOG.md has no section of %s: dev/release prepare %s", version, version)
	}
	sums, err := w.sums(version)
	if err != nil {
		return err
	}
	for folder, want := range sums {
		if got, err := w.read(folder + "/go.sum"); err != nil || got != want {
			return fmt.Errorf("%s/go.sum has other hashes of our modules than what is checked out: dev/release prepare %s", folder, version)
		}
	}
	return nil
}
