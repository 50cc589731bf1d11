package storetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider/store/feeds"
)

func (r *reader) report(problems ...feeds.Problem) {
	r.t.Helper()
	reporter, ok := r.feed.(feeds.Reporter)
	if !ok {
		r.t.Fatal("the feed keeps no problems")
	}
	if err := reporter.Report(r.t.Context(), problems); err != nil {
		r.t.Fatalf("Report: %v", err)
	}
}

func problemsOf(t *testing.T, h Harness, feed string) []feeds.Problem {
	t.Helper()
	problems, err := h.Admin.Problems(t.Context(), feed)
	if err != nil {
		t.Fatalf("Problems: %v", err)
	}
	return problems
}

// testProblems follows a problem from its beginning to its end and its return.
func testProblems(t *testing.T, h Harness) {
	if h.Admin == nil {
		t.Skip("n/a: no admin API")
	}
	r := joinAlone(t, h, "feed", longLease)
	if got := problemsOf(t, h, "feed"); len(got) > 0 {
		t.Fatalf("there are problems from the start: %+v", got)
	}
	r.report()
	r.report(feeds.Problem{Name: "orders"}) // over without having begun
	if got := problemsOf(t, h, "feed"); len(got) > 0 {
		t.Fatalf("what never began is a problem: %+v", got)
	}
	r.report(feeds.Problem{Name: "orders", Failures: 3, Cause: "queue is full"})
	first := problemsOf(t, h, "feed")
	now := time.Now()
	if len(first) != 1 || first[0].Name != "orders" || first[0].Failures != 3 || first[0].Cause != "queue is full" || !near(first[0].Since, now) ||
		!near(first[0].Last, now) || !first[0].Over.IsZero() {
		t.Fatalf("got %+v", first)
	}
	pass(t)
	r.report(feeds.Problem{Name: "orders", Failures: 4, Cause: "no such queue"}, feeds.Problem{Failures: 1, Cause: "connection refused"})
	got := problemsOf(t, h, "feed")
	if len(got) != 2 {
		t.Fatalf("got %+v", got)
	}
	if got[0].Name != "" { // both were last seen at the same time
		got[0], got[1] = got[1], got[0]
	}
	if p := got[1]; p.Failures != 7 || p.Cause != "no such queue" || !p.Since.Equal(first[0].Since) || !p.Last.After(p.Since) || !p.Over.IsZero() {
		t.Errorf("got %+v", p)
	}
	if p := got[0]; p.Failures != 1 || p.Cause != "connection refused" {
		t.Errorf("the destination as a whole has %+v", p)
	}
	pass(t)
	r.report(feeds.Problem{Name: "orders"})
	r.report(feeds.Problem{Name: "other", Failures: 1, Cause: "x"})
	got = problemsOf(t, h, "feed")
	if len(got) != 3 || got[0].Name != "other" || !got[0].Over.IsZero() {
		t.Fatalf("got %+v, want the newest first", got)
	}
	over := find(t, got, "orders")
	if over.Over.Before(over.Last) || over.Failures != 7 || over.Cause != "no such queue" || !find(t, got, "").Over.IsZero() {
		t.Errorf("got %+v", over)
	}
	pass(t)
	r.report(feeds.Problem{Name: "orders"})
	if p := find(t, problemsOf(t, h, "feed"), "orders"); !p.Over.Equal(over.Over) {
		t.Errorf("it was over at %v, and then at %v", over.Over, p.Over)
	}
	r.report(feeds.Problem{Name: "orders", Failures: 2, Cause: "queue is full"})
	p := find(t, problemsOf(t, h, "feed"), "orders")
	if p.Failures != 2 || !p.Over.IsZero() || !p.Since.After(over.Over) || p.Cause != "queue is full" {
		t.Errorf("it does not begin again: %+v", p)
	}
	if got := problemsOf(t, h, "nobody"); len(got) > 0 {
		t.Errorf("a feed that does not exist has %+v", got)
	}
}

func find(t *testing.T, problems []feeds.Problem, name string) feeds.Problem {
	t.Helper()
	for _, p := range problems {
		if p.Name == name {
			return p
		}
	}
	t.Fatalf("there is no problem of %q", name)
	return feeds.Problem{}
}

// pass waits until the store's clock has advanced.
func pass(t *testing.T) {
	t.Helper()
	began := time.Now()
	eventually(t, "time passes", func() bool { return time.Since(began) > 5*time.Millisecond })
}

// testProblemTexts reports any text of a destination, for names of any length.
func testProblemTexts(t *testing.T, h Harness) {
	if h.Admin == nil {
		t.Skip("n/a: no admin API")
	}
	r := joinAlone(t, h, "feed", longLease)
	long := strings.Repeat("日本語 🚚", 400)
	r.report(
		feeds.Problem{Name: long + "a", Failures: 1, Cause: strings.Repeat("ü", 5000)},
		feeds.Problem{Name: long + "b", Failures: 2, Cause: "\x00 \xff it's \"broken\""},
	)
	got := problemsOf(t, h, "feed")
	if len(got) != 2 || find(t, got, long+"a").Failures != 1 || find(t, got, long+"b").Failures != 2 {
		t.Errorf("got %d problems", len(got))
	}
	for _, p := range got {
		if p.Cause == "" {
			t.Errorf("of %d failures there is no cause", p.Failures)
		}
	}
}

// testProblemsAreBounded reports 1,500 names, some of which are over.
func testProblemsAreBounded(t *testing.T, h Harness) {
	if h.Admin == nil {
		t.Skip("n/a: no admin API")
	}
	r := joinAlone(t, h, "feed", longLease)
	name := func(i int) string { return fmt.Sprintf("n%04d", i) }
	for i := 0; i < 1500; i += 100 {
		var some []feeds.Problem
		for j := range 100 {
			some = append(some, feeds.Problem{Name: name(i + j), Failures: 1, Cause: "x"})
		}
		r.report(some...)
		if i == 800 { // the second hundred is over; the first goes on
			for j := range some {
				some[j] = feeds.Problem{Name: name(100 + j)}
			}
			r.report(some...)
		}
		pass(t)
	}
	got := problemsOf(t, h, "feed")
	if len(got) != 1000 {
		t.Fatalf("%d names are kept, want 1,000", len(got))
	}
	kept := make(map[string]bool)
	for _, p := range got {
		kept[p.Name] = true
	}
	for i := range 1500 {
		if want := i >= 500; kept[name(i)] != want { // evicted first: those that were over, then the oldest
			t.Fatalf("of number %d is known: %v, want %v", i, kept[name(i)], want)
		}
	}
}
