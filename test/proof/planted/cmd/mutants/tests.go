package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postrider/postrider/test/proof/planted/rule"
)

// tests are the tests of a package, with the mutants of the whole product compiled in.
type tests struct {
	binary  string
	folder  string
	names   []string        // that look for mutants
	reached map[uint32]bool // mutants that they reach
	limit   time.Duration   // of a run with a mutant
}

// testsOf builds the tests of a package and runs them without a mutant. Those that fail prove
// nothing and are left out. If all take longer than the limit, the quickest are used.
func (r *runner) testsOf(ctx context.Context, pkg string) (*tests, error) {
	if t := r.tests[pkg]; t != nil {
		return t, nil
	}
	t := &tests{binary: filepath.Join(r.dir, strings.ReplaceAll(pkg, "/", "_")+".test"), folder: pkg, reached: make(map[uint32]bool)}
	build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", r.overlay, "-o", t.binary, "./"+pkg)
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s does not compile with its mutants: %w\n%s", pkg, err, out)
	}
	out, took, err := t.start(ctx, "", 10*r.limit, "-test.v")
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: these tests fail without a mutant and are not used: %s\n", pkg, strings.Join(failures(out), ", "))
	}
	t.names = quickest(out, took, r.limit)
	t.limit = min(r.limit, 20*time.Second+10*took) // a test that hangs need not hang for a minute
	fmt.Fprintf(os.Stderr, "%s: all tests take %.0f s, %d of them look for mutants\n", pkg, took.Seconds(), len(t.names))
	if len(t.names) > 0 {
		if err := t.reach(ctx, filepath.Join(r.dir, "reached"), 10*r.limit); err != nil {
			return nil, err
		}
	}
	r.tests[pkg] = t
	return t, nil
}

// reach runs the tests without a mutant, to learn which of them they reach.
func (t *tests) reach(ctx context.Context, file string, limit time.Duration) error {
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		return err
	}
	if _, _, err := t.start(ctx, rule.EnvReached+"="+file, limit, t.only()); err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for number := range strings.FieldsSeq(string(text)) {
		n, err := strconv.ParseUint(number, 16, 32)
		if err != nil {
			return err
		}
		t.reached[uint32(n)] = true
	}
	return nil
}

// run runs the tests with a mutant until one fails, and returns its name. A test that hangs is
// stopped at the limit and has failed.
func (t *tests) run(ctx context.Context, m rule.Mutant) (failed string, err error) {
	out, _, err := t.start(ctx, fmt.Sprintf("%s=%08x", rule.EnvOn, m.On()), t.limit, "-test.failfast", t.only())
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err == nil:
		return "", nil
	case !errors.As(err, &exit):
		return "", err
	}
	if names := failures(out); len(names) > 0 {
		return names[0], nil
	}
	if strings.Contains(out, "panic: test timed out") {
		return "(time is up)", nil
	}
	return "(the process ends)", nil
}

func (t *tests) only() string { return "-test.run=^(" + strings.Join(t.names, "|") + ")$" }

// start runs the binary in its folder, beside one server of each kind, and without the tests that
// measure time.
func (t *tests) start(ctx context.Context, env string, limit time.Duration, args ...string) (out string, took time.Duration, err error) {
	cmd := exec.CommandContext(ctx, t.binary, append(args, "-test.short", "-test.timeout="+limit.String())...)
	cmd.Dir = t.folder
	for _, e := range os.Environ() {
		if !olderServer.MatchString(e) {
			cmd.Env = append(cmd.Env, e)
		}
	}
	cmd.Env = append(cmd.Env, "CI=", "POSTRIDER_LONG=", "POSTRIDER_ALONE=later", "POSTRIDER_POSTGRES=18", env)
	cmd.WaitDelay = 10 * time.Second
	begin := time.Now()
	text, err := cmd.CombinedOutput()
	return string(text), time.Since(begin), err
}

var (
	olderServer = regexp.MustCompile(`^POSTRIDER_TEST_(POSTGRES|PGBOUNCER)1[0-7]`)
	failLine    = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)
	passLine    = regexp.MustCompile(`(?m)^--- PASS: (\S+) \(([0-9.]+)s\)`)
)

func failures(out string) []string {
	var names []string
	for _, f := range failLine.FindAllStringSubmatch(out, -1) {
		names = append(names, f[1])
	}
	return names
}

// quickest returns the tests that passed: all if they took no longer than the limit together, or as
// many of the quickest as the limit allows one after another.
func quickest(out string, took, limit time.Duration) []string {
	seconds := make(map[string]float64)
	for _, p := range passLine.FindAllStringSubmatch(out, -1) {
		seconds[p[1]], _ = strconv.ParseFloat(p[2], 64) // matched by the expression
	}
	names := slices.SortedFunc(maps.Keys(seconds), func(a, b string) int {
		return cmp.Or(cmp.Compare(seconds[a], seconds[b]), cmp.Compare(a, b))
	})
	if took <= limit {
		return names
	}
	sum := 0.0
	for i, n := range names {
		if sum += seconds[n]; sum > limit.Seconds() {
			return names[:i]
		}
	}
	return names
}
