// Package reconciletest is the conformance test suite for implementations of [reconcile.Store].
package reconciletest

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/reconcile"
)

// Harness is a store under test, with transactions on its database. Tests may share one.
type Harness[Tx any] struct {
	Store reconcile.Store[Tx]
	DB    postrider.Transactor[Tx]

	test string
}

// job returns a name that no other test uses.
func (h Harness[Tx]) job(name string) string { return h.test + "-" + name }

// Run runs the suite. It calls open once for each test. The tests run in parallel.
func Run[Tx any](t *testing.T, open func(t *testing.T) Harness[Tx]) {
	for name, test := range map[string]func(*testing.T, Harness[Tx]){
		"Announce":         testAnnounce[Tx],
		"OneHolder":        testOneHolder[Tx],
		"ClaimsRace":       testClaimsRace[Tx],
		"DeadHolder":       testDeadHolder[Tx],
		"LateHolder":       testLateHolder[Tx],
		"CountsWithTx":     testCountsWithTx[Tx],
		"CountRenews":      testCountRenews[Tx],
		"Failure":          testFailure[Tx],
		"Again":            testAgain[Tx],
		"AgainAtOnce":      testAgainAtOnce[Tx],
		"AgainIsForgotten": testAgainIsForgotten[Tx],
		"AgainRollsBack":   testAgainRollsBack[Tx],
		"CancelledContext": testCancelled[Tx],
		"UnknownJob":       testUnknownJob[Tx],
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t)
			h.test = name
			test(t, h)
		})
	}
}

const long = time.Minute

func now(at time.Time) time.Time { return at }

func (h Harness[Tx]) announce(t *testing.T, job string) {
	t.Helper()
	if err := h.Store.Announce(t.Context(), h.job(job), "every 1m0s", now); err != nil {
		t.Fatal(err)
	}
}

func (h Harness[Tx]) claim(t *testing.T, job, holder string, lease time.Duration) reconcile.Claim {
	t.Helper()
	c, err := h.Store.Claim(t.Context(), h.job(job), holder, lease, true)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (h Harness[Tx]) count(t *testing.T, c reconcile.Claim, n reconcile.Counts) error {
	return h.DB.Do(t.Context(), func(ctx context.Context, tx Tx) error { return h.Store.Count(ctx, tx, c, n) })
}

func (h Harness[Tx]) state(t *testing.T, job string) reconcile.State {
	t.Helper()
	all, err := h.Store.Jobs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(all, func(s reconcile.State) bool { return s.Job == h.job(job) })
	if at < 0 {
		t.Fatalf("no job %s in %+v", job, all)
	}
	return all[at]
}

func testAnnounce[Tx any](t *testing.T, h Harness[Tx]) {
	h.announce(t, "b")
	h.announce(t, "a")
	first := h.state(t, "a").Next
	err := h.Store.Announce(t.Context(), h.job("a"), "every 1m0s", func(at time.Time) time.Time { return at.Add(time.Hour) })
	if s := h.state(t, "a"); err != nil || !s.Next.Equal(first) {
		t.Errorf("announced again: next %v, was %v, err %v", s.Next, first, err)
	}
	var got time.Time
	err = h.Store.Announce(t.Context(), h.job("a"), "0 0 * * *", func(at time.Time) time.Time { got = at; return at.Add(time.Hour) })
	if s := h.state(t, "a"); err != nil || s.Next.Sub(got) != time.Hour || s.Schedule != "0 0 * * *" {
		t.Errorf("another schedule: %+v, err %v", s, err)
	}
	all, err := h.Store.Jobs(t.Context())
	if err != nil || !slices.IsSortedFunc(all, func(a, b reconcile.State) int { return cmp.Compare(a.Job, b.Job) }) {
		t.Errorf("jobs: %+v, %v", all, err)
	}
	h.state(t, "b")
	_, err = h.Store.Claim(t.Context(), h.job("a"), "me", long, false)
	var notYet *reconcile.NotYetError
	if !errors.As(err, &notYet) || notYet.Holder != "" || notYet.Wait < 50*time.Minute || notYet.Wait > time.Hour {
		t.Errorf("a job that is not due: %v", err)
	}
	if c := h.claim(t, "a", "me", long); c.Token == 0 {
		t.Error("no token")
	}
}

func testOneHolder[Tx any](t *testing.T, h Harness[Tx]) {
	h.announce(t, "a")
	h.announce(t, "b")
	c := h.claim(t, "a", "me", long)
	_, err := h.Store.Claim(t.Context(), h.job("a"), "you", long, true)
	var notYet *reconcile.NotYetError
	if !errors.As(err, &notYet) || notYet.Holder != "me" || notYet.Wait <= 0 || notYet.Wait > long || !errors.Is(err, reconcile.ErrNotYet) {
		t.Fatalf("a job that is held: %v", err)
	}
	if s := h.state(t, "a"); s.Holder != "me" || !s.Until.After(c.Now) || !s.Last.Started.Equal(c.Now) {
		t.Errorf("held: %+v", s)
	}
	h.claim(t, "b", "you", long) // another job is free
	next := c.Now.Add(time.Hour)
	if err := h.Store.Finish(t.Context(), c, next, 0, ""); err != nil {
		t.Fatal(err)
	}
	s := h.state(t, "a")
	if s.Holder != "" || !s.Next.Equal(next) || s.Runs != 1 || s.Failed != 0 || s.Last.Holder != "me" || s.Last.Finished.Before(c.Now) {
		t.Errorf("finished: %+v", s)
	}
	if err := h.Store.Finish(t.Context(), c, next, 0, ""); !errors.Is(err, reconcile.ErrLost) {
		t.Errorf("finished twice: %v", err)
	}
	if again := h.claim(t, "a", "you", long); again.Token <= c.Token {
		t.Errorf("token %d after %d", again.Token, c.Token)
	}
}

func testClaimsRace[Tx any](t *testing.T, h Harness[Tx]) {
	h.announce(t, "a")
	var won atomic.Int64
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			_, err := h.Store.Claim(t.Context(), h.job("a"), "one", long, false)
			if err == nil {
				won.Add(1)
			} else if !errors.Is(err, reconcile.ErrNotYet) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if won.Load() != 1 {
		t.Errorf("%d claims were granted", won.Load())
	}
}

func testDeadHolder[Tx any](t *testing.T, h Harness[Tx]) {
	h.announce(t, "a")
	dead := h.claim(t, "a", "dead", time.Millisecond)
	for deadline := time.Now().Add(10 * time.Second); ; {
		c, err := h.Store.Claim(t.Context(), h.job("a"), "successor", long, false) // without waiting for its schedule
		if err == nil {
			if c.Token <= dead.Token {
				t.Errorf("token %d after %d", c.Token, dead.Token)
			}
			return
		}
		if !errors.Is(err, reconcile.ErrNotYet) || time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func testLateHolder[Tx any](t *testing.T, h Harness[Tx]) {
	h.announce(t, "a")
	late := h.claim(t, "a", "late", time.Microsecond)
	time.Sleep(time.Millisecond)
	if err := h.count(t, late, reconcile.Counts{Found: 1}); err != nil {
		t.Fatalf("no other claim has taken the job over, so this one is still valid: %v", err)
	}
	time.Sleep(time.Millisecond)
	c := h.claim(t, "a", "successor", long)
	if err := h.count(t, late, reconcile.Counts{Found: 5, Fixed: 5}); !errors.Is(err, reconcile.ErrLost) {
		t.Errorf("count: %v", err)
	}
	if err := h.Store.Finish(t.Context(), late, late.Now, 0, ""); !errors.Is(err, reconcile.ErrLost) {
		t.Errorf("finish: %v", err)
	}
	if s := h.state(t, "a"); s.Holder != "successor" || s.Total.Fixed != 0 || s.Total.Found != 1 || s.Last.Found != 0 {
		t.Errorf("the late holder has changed something: %+v", s)
	}
	if err := h.count(t, c, reconcile.Counts{}); err != nil {
		t.Error(err)
	}
}

func testCountsWithTx[Tx any](t *testing.T, h Harness[Tx]) {
	h.announce(t, "a")
	c := h.claim(t, "a", "me", long)
	if err := h.count(t, c, reconcile.Counts{Found: 3, Fixed: 2}); err != nil {
		t.Fatal(err)
	}
	undone := errors.New("undone")
	err := h.DB.Do(t.Context(), func(ctx context.Context, tx Tx) error {
		return errors.Join(h.Store.Count(ctx, tx, c, reconcile.Counts{Found: 100, Fixed: 100}), undone)
	})
	if !errors.Is(err, undone) || errors.Is(err, reconcile.ErrLost) {
		t.Fatal(err)
	}
	if err := h.Store.Finish(t.Context(), c, c.Now, 0, ""); err != nil {
		t.Fatal(err)
	}
	c = h.claim(t, "a", "you", long)
	if err := h.count(t, c, reconcile.Counts{Found: 1, Fixed: 1}); err != nil {
		t.Fatal(err)
	}
	s := h.state(t, "a")
	if s.Total != (reconcile.Counts{Found: 4, Fixed: 3}) || s.Last.Counts != (reconcile.Counts{Found: 1, Fixed: 1}) {
		t.Errorf("counts: %+v", s)
	}
}

func testCountRenews[Tx any](t *testing.T, h Harness[Tx]) {
	h.announce(t, "a")
	c := h.claim(t, "a", "me", long)
	before := h.state(t, "a").Until
	time.Sleep(2 * time.Millisecond)
	if err := h.count(t, c, reconcile.Counts{}); err != nil {
		t.Fatal(err)
	}
	if after := h.state(t, "a").Until; !after.After(before) {
		t.Errorf("until %v, then %v", before, after)
	}
}

func testFailure[Tx any](t *testing.T, h Harness[Tx]) {
	h.announce(t, "a")
	was := h.state(t, "a").Next
	c := h.claim(t, "a", "me", long)
	if err := h.Store.Finish(t.Context(), c, time.Time{}, 0, "no such table"); err != nil {
		t.Fatal(err)
	}
	s := h.state(t, "a")
	if s.Runs != 1 || s.Failed != 1 || s.Last.Error != "no such table" || !s.Next.Equal(was) {
		t.Errorf("failed: %+v", s)
	}
	h.claim(t, "a", "me", long)
	if s := h.state(t, "a"); s.Last.Error != "" || !s.Last.Finished.IsZero() {
		t.Errorf("runs again: %+v", s)
	}
}

func testCancelled[Tx any](t *testing.T, h Harness[Tx]) {
	h.announce(t, "a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.Store.Announce(ctx, h.job("b"), "every 1s", now); !errors.Is(err, context.Canceled) {
		t.Errorf("announce: %v", err)
	}
	if _, err := h.Store.Claim(ctx, h.job("a"), "me", long, true); !errors.Is(err, context.Canceled) {
		t.Errorf("claim: %v", err)
	}
	if _, err := h.Store.Jobs(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("jobs: %v", err)
	}
}

func testUnknownJob[Tx any](t *testing.T, h Harness[Tx]) {
	if _, err := h.Store.Claim(t.Context(), h.job("none"), "me", long, true); !errors.Is(err, reconcile.ErrNoJob) {
		t.Errorf("claim: %v", err)
	}
	if err := h.count(t, reconcile.Claim{Job: h.job("none"), Token: 1}, reconcile.Counts{}); !errors.Is(err, reconcile.ErrLost) {
		t.Errorf("count: %v", err)
	}
}
