package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// collect feeds lines of go test -json to a collector.
func collect(t *testing.T, text string) []result {
	t.Helper()
	c := newCollector()
	for d := json.NewDecoder(strings.NewReader(text)); ; {
		var e event
		if err := d.Decode(&e); errors.Is(err, io.EOF) {
			return c.done
		} else if err != nil {
			t.Fatal(err)
		}
		c.add(e)
	}
}

// names lists results as "action test".
func names(results []result) (all []string) {
	for _, r := range results {
		all = append(all, strings.TrimSpace(r.Action+" "+r.Test))
	}
	return all
}

func TestCollect(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text   string
		want   string
		output string // of the first result
	}{
		"passes": {`{"Action":"run","Package":"p","Test":"TestA"}{"Action":"output","Package":"p","Test":"TestA","Output":"noise\n"}
			{"Action":"pass","Package":"p","Test":"TestA","Elapsed":1.5}{"Action":"pass","Package":"p","Elapsed":2}`, "pass TestA, pass", ""},
		"fails": {`{"Action":"run","Package":"p","Test":"TestA"}{"Action":"output","Package":"p","Test":"TestA","Output":"a_test.go:1: bad\n"}
			{"Action":"fail","Package":"p","Test":"TestA"}{"Action":"fail","Package":"p"}`, "fail TestA, fail", "a_test.go:1: bad\n"},
		"crashes": {`{"Action":"run","Package":"p","Test":"TestA"}{"Action":"output","Package":"p","Test":"TestA","Output":"panic\n"}
			{"Action":"fail","Package":"p"}`, "unfinished TestA, fail", "panic\n"},
		"does not compile": {`{"Action":"build-output","ImportPath":"p [p.test]","Output":"a.go:1: no\n"}{"Action":"build-fail","ImportPath":"p [p.test]"}
			{"Action":"start","Package":"p"}{"Action":"fail","Package":"p","FailedBuild":"p [p.test]"}`, "fail", "a.go:1: no\n"},
	} {
		got := collect(t, c.text)
		if s := strings.Join(names(got), ", "); s != c.want || got[0].Output != c.output {
			t.Errorf("%s: got %q with %q, want %q with %q", name, s, got[0].Output, c.want, c.output)
		}
	}
}

// The output of a test is bounded, so that a test that prints without end does not exhaust memory.
// The end of the output is kept, because the failure is there.
func TestOutputIsBounded(t *testing.T) {
	t.Parallel()
	c := newCollector()
	for i := range 100_000 {
		c.add(event{Action: "output", Package: "p", Test: "TestA", Output: fmt.Sprintf("line %d\n", i)})
	}
	c.add(event{Action: failed, Package: "p", Test: "TestA"})
	if out := c.done[0].Output; len(out) > maxOutput || !strings.HasSuffix(out, "line 99999\n") {
		t.Errorf("%d bytes are kept, the last are %q", len(out), out[len(out)-20:])
	}
}

func skip(test, why string) result {
	return result{Package: "p", Test: test, Action: skipped, Output: "=== RUN   " + test + "\n    a_test.go:7: " + why + "\n--- SKIP: " + test + " (0.00s)\n"}
}

func TestSkips(t *testing.T) {
	t.Parallel()
	results := []result{
		{Package: "p", Test: "TestRuns", Action: passed}, skip("TestLong", "long: an hour"), skip("TestAlone", "alone: measures time"),
		skip("TestVoid", "n/a: keeps no order"), skip("TestServer", "POSTRIDER_TEST_NATS is not set"), {Package: "p", Test: "TestMute", Action: skipped},
		{Package: "empty", Action: skipped},
	}
	v := evaluate(results, false)
	if got := names(v.Failed); !slices.Equal(got, []string{"fail TestServer", "fail TestMute"}) {
		t.Errorf("failed: %q, want those that gave no good reason", got)
	}
	if v.Passed != 1 || v.Void != 1 || !slices.Equal(names(v.Long), []string{"skip TestLong"}) || !slices.Equal(v.Alone["p"], []string{"TestAlone"}) {
		t.Errorf("got %+v", v)
	}
	v = evaluate(append(results, result{Package: "p", Test: "TestAlone", Action: passed}), true)
	if got := names(v.Failed); !slices.Equal(got, []string{"fail TestLong", "fail TestServer", "fail TestMute"}) || len(v.Alone) != 0 {
		t.Errorf("long: failed %q, alone %v", got, v.Alone)
	}
}

func TestLost(t *testing.T) {
	t.Parallel()
	ran := tallies([]result{
		{Package: root + "/a", Test: "TestA", Action: passed}, {Package: root + "/a", Test: "TestA", Action: passed},
		{Package: root + "/a", Action: passed, Seconds: 1}, {Package: root + "/a", Action: passed, Seconds: 2},
		{Package: root + "/b", Test: "TestB", Action: skipped}, {Package: root + "/b", Action: passed},
	})
	if want := (tally{1, 3}); ran[root+"/a"] != want {
		t.Errorf("got %+v, want %+v", ran[root+"/a"], want)
	}
	recorded := map[string]tally{root + "/a": {Tests: 1}, root + "/b": {Tests: 1}, root + "/gone": {Tests: 4}}
	want := []string{"b: 0 tests ran, 1 are recorded", "gone: 0 tests ran, 4 are recorded"}
	if got := lost(ran, recorded); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSlowest(t *testing.T) {
	t.Parallel()
	results := []result{
		{Package: "p", Test: "TestA", Action: passed, Seconds: 9}, {Package: "p", Test: "TestA/x", Action: passed, Seconds: 2},
		{Package: "p", Test: "TestB", Action: passed, Seconds: 3}, {Package: "p", Action: passed, Seconds: 12},
	}
	if got := names(slowest(results, 1)); !slices.Equal(got, []string{"pass TestB"}) {
		t.Errorf("got %q: the time of TestA is that of its subtest", got)
	}
	r := report{Packages: map[string]tally{"a": {Seconds: 1}, "b": {Seconds: 3}, "c": {Seconds: 2}}}
	if got := r.slowest(2); !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("packages: %q", got)
	}
}

func TestPatterns(t *testing.T) {
	t.Parallel()
	got := patterns([]string{"TestA", "TestSuite/a+b/pg15", "TestB"})
	if want := []string{`^TestSuite$/^a\+b$/^pg15$`, "^(TestA|TestB)$"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAffected(t *testing.T) {
	t.Parallel()
	all := []pkg{
		{ImportPath: root, Dir: "."},
		{ImportPath: root + "/relay", Dir: "relay", Imports: []string{root}},
		{ImportPath: root + "/store/postgres", Dir: "store/postgres", Imports: []string{root}, XTestImports: []string{root + "/store/storetest"}},
		{ImportPath: root + "/store/storetest", Dir: "store/storetest", Imports: []string{root}},
		{ImportPath: root + "/cmd/postrider", Dir: "cmd/postrider", Imports: []string{root + "/cmd/postrider/internal/cli"}},
		{ImportPath: root + "/cmd/postrider/internal/cli", Dir: "cmd/postrider/internal/cli", Imports: []string{root + "/relay"}},
		{ImportPath: root + "/test/built", Dir: "test/built"},
		{ImportPath: root + "/test/console", Dir: "test/console", XTestImports: []string{root + "/test/built"}},
		{ImportPath: root + "/test/docs", Dir: "test/docs"},
		{ImportPath: root + "/saga", Dir: "saga"},
	}
	for file, want := range map[string]string{
		"saga/saga.go":                         "saga test/docs",
		"relay/worker.go":                      "cmd/postrider cmd/postrider/internal/cli relay test/built test/console test/docs",
		"store/storetest/admin.go":             "store/postgres store/storetest test/docs",
		"store/postgres/sql/schema/001.sql":    "store/postgres test/docs",
		"message.go":                           ". cmd/postrider cmd/postrider/internal/cli relay store/postgres store/storetest test/built test/console test/docs",
		"docs/concepts/order.md":               "cmd/postrider cmd/postrider/internal/cli store/postgres test/built test/console test/docs",
		"dev/lib/nats.sh":                      ". cmd/postrider cmd/postrider/internal/cli relay saga store/postgres store/storetest test/built test/console test/docs",
		"test/console/browser/specs/a.spec.ts": "test/console test/docs",
	} {
		var got []string
		for path, is := range affected(all, []string{file}) {
			if is {
				got = append(got, short(path))
			}
		}
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
	}
}

// The list of what tests read besides packages is maintained by hand. Each line must name a package
// that exists.
func TestReadsNamesPackages(t *testing.T) {
	t.Parallel()
	dir, err := output(".", "git", "rev-parse", "--show-toplevel")
	if err != nil {
		t.Fatal(err)
	}
	all, err := packages(strings.TrimSpace(dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range slices.Sorted(maps.Keys(reads)) {
		if !slices.ContainsFunc(all, func(p pkg) bool { return p.ImportPath == path }) {
			t.Errorf("%s is no package", path)
		}
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/report.json"
	if r, err := readReport(path); err != nil || r.Packages != nil {
		t.Errorf("a report that is not there: %+v, %v", r, err)
	}
	want := report{"full", map[string]float64{"vet": 61}, map[string]tally{root + "/a": {3, 1.5}}}
	if err := want.write(path); err != nil {
		t.Fatal(err)
	}
	got, err := readReport(path)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	var b strings.Builder
	got.print(&b, []string{"vet"}, nil, report{})
	if !strings.Contains(b.String(), "1:01         -  vet\n") {
		t.Errorf("got\n%s", b.String())
	}
}
