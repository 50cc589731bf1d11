package postridertest_test

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// fakeT is a test whose failure does not fail the real test.
type fakeT struct {
	testing.TB
	mu       sync.Mutex
	failed   bool
	stopped  bool
	log      strings.Builder
	output   bytes.Buffer
	cleanups []func()
}

func (f *fakeT) Helper()           {}
func (f *fakeT) Name() string      { return "fake" }
func (f *fakeT) Output() io.Writer { return &f.output }
func (f *fakeT) Cleanup(c func())  { f.cleanups = append(f.cleanups, c) }

func (f *fakeT) Failed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed
}

func (f *fakeT) Logf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fmt.Fprintf(&f.log, format+"\n", args...)
}

func (f *fakeT) Errorf(format string, args ...any) {
	f.Logf(format, args...)
	f.mu.Lock()
	f.failed = true
	f.mu.Unlock()
}

func (f *fakeT) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	f.stopped = true
	runtime.Goexit()
}

// try runs a test and its cleanups. It returns whether it failed, and its output.
func try(test func(t testing.TB)) (failed bool, said string) {
	f := &fakeT{}
	var run sync.WaitGroup
	run.Go(func() { test(f) })
	run.Wait()
	for _, c := range f.cleanups {
		c()
	}
	return f.failed, f.log.String()
}

// mustFail checks that a test fails with all of the given texts in its output.
func mustFail(t *testing.T, test func(t testing.TB), want ...string) {
	t.Helper()
	failed, said := try(test)
	if !failed {
		t.Error("the assertion has not failed")
	}
	for _, text := range want {
		if !strings.Contains(said, text) {
			t.Errorf("the failure does not say %q:\n%s", text, said)
		}
	}
}

func mustPass(t *testing.T, test func(t testing.TB)) {
	t.Helper()
	if failed, said := try(test); failed {
		t.Errorf("the assertion has failed:\n%s", said)
	}
}
