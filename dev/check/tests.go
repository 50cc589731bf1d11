package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// test runs go test and returns the results. It prints each package when it ends, and each failure
// immediately.
func (r *run) test(env []string, args ...string) ([]result, error) {
	// vet is a separate step, and linking symbols for a debugger takes long.
	cmd := r.prepare("go", append([]string{"test", "-json", "-count=1", "-vet=off", "-ldflags=-s -w"}, args...)...)
	cmd.Env = append(slices.Clone(r.env), env...)
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := newCollector()
	for d := json.NewDecoder(pipe); ; {
		var e event
		if err := d.Decode(&e); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return c.done, errors.Join(fmt.Errorf("what go test prints: %w", err), cmd.Process.Kill(), cmd.Wait())
		}
		for _, done := range c.add(e) {
			r.show(done)
		}
	}
	err = cmd.Wait()
	var ended *exec.ExitError
	if errors.As(err, &ended) && slices.ContainsFunc(c.done, func(r result) bool { return r.Action == failed }) {
		err = nil // the results have the failures
	}
	return c.done, err
}

func (r *run) show(done result) {
	switch {
	case done.Action == failed || done.Action == unfinished:
		r.say("%s: %s %s (%.1f s)\n%s", strings.ToUpper(done.Action), short(done.Package), done.Test, done.Seconds, indent(done.Output))
	case done.Test == "" && done.Action == passed:
		r.say("ok %s (%.1f s)", short(done.Package), done.Seconds)
	}
}

// alone runs the tests that need the machine to themselves, one package after the other. A package
// may still run some of its own tests in parallel.
func (r *run) alone(v outcome, timeout string) (all []result, err error) {
	for _, p := range slices.Sorted(maps.Keys(v.Alone)) {
		for _, pattern := range patterns(v.Alone[p]) {
			results, e := r.test([]string{"POSTRIDER_ALONE=now"}, "-p=1", "-parallel=4", "-timeout="+timeout, "-run="+pattern, p)
			all, err = append(all, results...), errors.Join(err, e)
		}
	}
	return all, err
}

// patterns returns the arguments for go test -run that select exactly these tests: one pattern for
// all top-level tests, and one for each subtest.
func patterns(tests []string) (all []string) {
	var top []string
	for _, name := range tests {
		if !strings.Contains(name, "/") {
			top = append(top, regexp.QuoteMeta(name))
			continue
		}
		parts := strings.Split(name, "/")
		for i := range parts {
			parts[i] = "^" + regexp.QuoteMeta(parts[i]) + "$"
		}
		all = append(all, strings.Join(parts, "/"))
	}
	if len(top) > 0 {
		all = append(all, "^("+strings.Join(top, "|")+")$")
	}
	return all
}
