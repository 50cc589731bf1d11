// Command check runs the checks of this repository, in one of three tiers:
//
//	quick  format, lint, and the tests of the core and of one PostgreSQL: while you work
//	full   everything that a change must pass: what CI runs
//	long   all server versions and the long forms of the tests: every night
//
// Tests run in parallel. Those that call need.Alone measure time or saturate the machine; they run
// after the others, one at a time. A skipped test fails the check, unless it belongs to the long
// tier. So does a package of which fewer tests ran than recorded.json says.
//
// At the end the check prints the minutes of each step and the slowest packages and tests, beside
// the recorded ones, and writes them to bin/check.json. With -record it also writes them to
// recorded.json. bin/tests.txt lists all tests with their results.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

func main() {
	tier := flag.String("tier", "full", "quick, full or long")
	since := flag.String("changed", "", "leave out what the changes since `commit` cannot affect; 1 is the commit before the last push")
	record := flag.Bool("record", false, "write recorded.json from this run")
	flag.Parse()
	if flag.NArg() > 0 || !slices.Contains([]string{"quick", "full", "long"}, *tier) {
		flag.Usage()
		os.Exit(2)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := check(ctx, *tier, *since, *record); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const recordFile = "dev/check/recorded.json"

// packagesAtOnce and testsAtOnce limit how many packages, and how many tests of each, run in
// parallel. Most tests wait for servers more than they compute. Higher values overload two cores,
// so that leases expire and time limits are missed.
const packagesAtOnce, testsAtOnce = "2", "3"

func check(ctx context.Context, tier, since string, record bool) error {
	dir, err := output(".", "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	r := newRun(ctx, strings.TrimSpace(dir), os.Stdout)
	long := tier == "long"
	timeout := "15m"
	if long {
		timeout = "60m"
		r.env = append(r.env, "POSTRIDER_LONG=1")
	}
	r.env = append(r.env, "CI=true")
	if tier == "quick" {
		r.env = append(r.env, "POSTRIDER_POSTGRES=18")
	}
	urgent()

	// Installation and startup mostly wait for I/O, so lint runs meanwhile.
	stop := func() {}
	started := r.beside("install and start servers", func() (err error) {
		if tier != "quick" {
			if err := r.command(".", services, append([]string{"install"}, programs(long)...)...); err != nil {
				return err
			}
		}
		stop, err = r.startServers(map[string][]start{"quick": quickServers, "full": allServers, "long": longServers}[tier])
		return err
	})
	defer func() { started(); stop() }()

	r.step("format", r.format)
	r.step("the core requires nothing", r.coreRequiresNothing)
	r.step("users can get every module", func() error { return r.command(".", "go", "run", "./dev/modules", "check") })
	r.step("vet", func() error { return r.command(".", "go", "vet", root+"/...") })
	if tier != "quick" {
		r.step("pages of the console", r.consolePages)
	}
	if !started() {
		return errors.New("servers did not start: the tests were not run")
	}
	if err := r.addresses(); err != nil {
		return err
	}

	before, err := readReport(filepath.Join(r.dir, recordFile))
	if err != nil {
		return err
	}
	core, others, err := r.choose(tier, since, before)
	if err != nil {
		return err
	}
	// Lint uses the processor time that the tests leave.
	linted := r.beside("lint", func() error { return r.lint(tier) })
	later := []string{"POSTRIDER_ALONE=later"}
	var results []result
	add := func(some []result, err error) error { results = append(results, some...); return err }
	if len(core) > 0 {
		r.step("test the core, with the race detector", func() error {
			// The race detector needs cgo, and some tests read the path of their source.
			env := append(later, "CGO_ENABLED=1", "GOFLAGS="+strings.ReplaceAll(os.Getenv("GOFLAGS"), "-trimpath", ""))
			return add(r.test(env, slices.Concat([]string{"-race", "-parallel=" + testsAtOnce, "-timeout=" + timeout}, core)...))
		})
	}
	if len(others) > 0 {
		r.step("test beside each other", func() error {
			return add(r.test(later, slices.Concat([]string{"-p=" + packagesAtOnce, "-parallel=" + testsAtOnce, "-timeout=" + timeout}, others)...))
		})
	}
	linted()
	r.step("test alone", func() error { return add(r.alone(evaluate(results, long), timeout)) })
	return r.conclude(tier, since == "" && tier == "full", record, results, before)
}

// conclude prints the report and decides whether the check passed.
func (r *run) conclude(tier string, whole, record bool, results []result, before report) error {
	v := evaluate(results, tier == "long")
	now := report{tier, r.seconds, tallies(results)}
	now.print(r.out, r.steps, results, before)
	if len(v.Long) > 0 {
		fmt.Fprintf(r.out, "\nleft to make check-long:\n")
		for _, t := range v.Long {
			fmt.Fprintf(r.out, "    %s %s: %s\n", short(t.Package), t.Test, strings.TrimPrefix(reason(t), isLong))
		}
	}
	for pkg, tests := range v.Alone {
		v.Failed = append(v.Failed, result{Package: pkg, Test: strings.Join(tests, " "), Action: failed, Output: "was to run alone, but did not run"})
	}
	if whole && !record {
		for _, line := range lost(now.Packages, before.Packages) {
			v.Failed = append(v.Failed, result{Action: failed, Output: line + "; if that is intended: make check RECORD=1"})
		}
	}
	if len(v.Failed) > 0 {
		fmt.Fprintf(r.out, "\nfailed:\n")
		for _, t := range v.Failed {
			fmt.Fprintf(r.out, "%s %s\n%s\n", short(t.Package), t.Test, indent(t.Output))
		}
	}
	if err := os.MkdirAll(filepath.Join(r.dir, "bin"), 0o755); err != nil {
		return err
	}
	if err := now.write(filepath.Join(r.dir, "bin/check.json")); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.dir, "bin/tests.txt"), []byte(list(results)), 0o644); err != nil {
		return err
	}
	fmt.Fprintf(r.out, "\n%d passed, %d failed, %d skipped\n", v.Passed, len(v.Failed), len(v.Long)+v.Void)
	if len(v.Failed) > 0 || len(r.failed) > 0 {
		return fmt.Errorf("FAILED: %s", strings.Join(append(r.failed, fmt.Sprintf("%d tests", len(v.Failed))), ", "))
	}
	if whole && record {
		if err := now.write(filepath.Join(r.dir, recordFile)); err != nil {
			return err
		}
	}
	r.say("all checks passed")
	return nil
}
