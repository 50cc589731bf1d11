package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/postrider/postrider/test/proof/planted/rule"
)

// TestQuickest: all tests that passed if they fit, otherwise as many of the quickest as fit.
func TestQuickest(t *testing.T) {
	const out = "--- PASS: TestB (2.00s)\n    --- PASS: TestB/part (1.00s)\n--- FAIL: TestC (1.00s)\n--- PASS: TestA (30.00s)\n--- SKIP: TestD (0.00s)\n"
	if got := quickest(out, 40*time.Second, time.Minute); !slices.Equal(got, []string{"TestB", "TestA"}) {
		t.Errorf("in time: %q", got)
	}
	if got := quickest(out, 2*time.Minute, 31*time.Second); !slices.Equal(got, []string{"TestB"}) {
		t.Errorf("too slow: %q", got)
	}
	if got := failures(out); !slices.Equal(got, []string{"TestC"}) {
		t.Errorf("failures %q", got)
	}
}

// TestResume: what was caught is not run again, unless its source has changed; the rest is.
func TestResume(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.jsonl")
	l, err := openResults(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]outcome{"a": caught, "b": survived, "c": notReached} {
		if err := l.add(result{Name: name, Outcome: o}); err != nil {
			t.Fatal(err)
		}
	}
	if l, err = openResults(path); err != nil || len(l.caught) != 1 || l.caught["a"].Name != "a" {
		t.Errorf("%+v, %v", l, err)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openResults(path); err == nil {
		t.Error("a broken file is accepted")
	}
}

// TestProduct: every package has mutants, no two of them have the same number, and a package's own
// tests come first.
func TestProduct(t *testing.T) {
	t.Chdir("../../../../..")
	s, err := load(t.Context(), product)
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range product {
		if len(s.mutants(pkg)) == 0 {
			t.Errorf("%s has no mutants", pkg)
		}
	}
	r := &runner{product: s, dir: t.TempDir()}
	if err := r.prepare(); err != nil {
		t.Error(err)
	}
	known, err := rule.Survivors()
	if err != nil {
		t.Fatal(err)
	}
	if err := rule.Check(known, s.all()); err != nil {
		t.Error(err)
	}
	users, err := s.users(t.Context(), "relay/internal/shard")
	if err != nil || len(users) < 2 || users[0] != "relay/internal/shard" || users[1] != "relay" {
		t.Errorf("%q, %v", users, err)
	}
}
