package storetest

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
)

func standing(t *testing.T, h Harness, feed string) admin.FeedStanding {
	t.Helper()
	s, err := h.Admin.Gauges(t.Context())
	if err != nil {
		t.Fatalf("Gauges: %v", err)
	}
	i := slices.IndexFunc(s.Feeds, func(f admin.FeedStanding) bool { return f.Name == feed })
	if i < 0 || !near(s.At, time.Now()) || s.Foreign {
		t.Fatalf("of feed %q: %+v", feed, s)
	}
	return s.Feeds[i]
}

func testAdminGauges(t *testing.T, h Harness) {
	empty, err := h.Admin.Gauges(t.Context())
	if err != nil || len(empty.Feeds)+len(empty.Consumers) > 0 {
		t.Fatalf("got %+v, and %v; want no feed", empty, err)
	}
	r := joinAlone(t, h, "one", longLease)
	visit(t, h, "other")
	block(r, h, "a", 3, feeds.Deferral{Status: feeds.StatusDead})
	block(r, h, "b", 2, feeds.Deferral{Status: feeds.StatusRetry, Delay: time.Hour})
	block(r, h, "c", 1, feeds.Deferral{Status: feeds.StatusDead})
	act(t, h, admin.Park, admin.Filter{Key: "storetest/c"}, 1)
	write(t, h, series("d", 4)...)

	now := time.Now()
	f := standing(t, h, "one")
	want := admin.DeferredCount{Retry: 1, Waiting: 3, Dead: 1, Parked: 1, Blocked: 2, Exact: true}
	if f.Paused || f.Pending != (admin.Estimate{N: 4, Exact: true}) || f.Deferred != want || !near(f.Oldest, now) || !near(f.Settled, now) {
		t.Errorf("got %+v", f)
	}
	if len(f.Members) != 1 || f.Members[0].Name != t.Name() || len(f.Members[0].Shards) != h.Shards || !near(f.Members[0].Since, now) ||
		!near(f.Members[0].Heard, now) || f.Members[0].Until.Before(now) {
		t.Errorf("the members are %+v", f.Members)
	}
	var pending int64
	for i, l := range f.Shards {
		if l.Shard != i || l.Base != i || l.Holder != t.Name() || l.Until.Before(now) || !near(l.At, now) || l.Oldest.IsZero() != (l.Pending.N == 0) {
			t.Errorf("shard %d is %+v", i, l)
		}
		pending += l.Pending.N
	}
	if len(f.Shards) != h.Shards || pending != 4 {
		t.Errorf("%d shards with %d pending", len(f.Shards), pending)
	}
	for _, name := range h.feeds("one", "other")[1:] {
		f = standing(t, h, name)
		if len(f.Members) != 0 || f.Pending != (admin.Estimate{N: 10, Exact: true}) || f.Deferred != (admin.DeferredCount{Exact: true}) || f.Shards[0].Holder != "" {
			t.Errorf("got %+v", f)
		}
	}
	r.settle(r.next(4, 10)...)
	if f := standing(t, h, "one"); f.Pending != (admin.Estimate{Exact: true}) || !f.Oldest.IsZero() {
		t.Errorf("got %+v, want nothing pending", f)
	}
	if full, err := h.Admin.Gauges(t.Context()); err != nil || full.Enqueued < empty.Enqueued+10 {
		t.Errorf("enqueued %d, then %d, and %v; want at least 10 more", empty.Enqueued, full.Enqueued, err)
	}
	if v, err := h.Admin.Health(t.Context()); err != nil || !near(v.At, now) || v.Server == "" {
		t.Errorf("the health are %+v, and %v", v, err)
	}
}

// testAdminGaugesOfLateCommit commits a transaction long after later ones were settled.
func testAdminGaugesOfLateCommit(t *testing.T, h Harness) {
	r := joinAlone(t, h, "feed", longLease)
	late := begin(t, h, series("late", 3)...)
	write(t, h, series("k", 5)...)
	r.settle(r.next(5, 10)...)
	r.idle()
	if f := standing(t, h, "feed"); f.Pending.N != 0 {
		t.Errorf("what is not committed counts: %+v", f.Pending)
	}
	commit(t, late)
	if f := standing(t, h, "feed"); f.Pending != (admin.Estimate{N: 3, Exact: true}) || f.Oldest.IsZero() {
		t.Errorf("what was committed late does not count: %+v, oldest %v", f.Pending, f.Oldest)
	}
	pending := admin.Filter{Statuses: []feeds.Status{feeds.StatusPending}}
	if got := search(t, h, "feed", pending, 10); len(got) != 3 {
		t.Errorf("what was committed late is not found: %+v", got)
	}
}

// testAdminGaugesAgree: Gauges and ListFeeds always report the same numbers.
func testAdminGaugesAgree(t *testing.T, h Harness) {
	seed := seedsOf(t, 1)[0]
	t.Logf("to repeat: STORETEST_SEED=%d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	r := joinAlone(t, h, "feed", longLease)
	var open []Tx
	for step := range 80 {
		switch rng.IntN(6) {
		case 0:
			if len(open) < 5 {
				open = append(open, begin(t, h, series(string(rune('a'+rng.IntN(20))), 1+rng.IntN(10))...))
			}
		case 1:
			if len(open) > 0 {
				i := rng.IntN(len(open))
				commit(t, open[i])
				open = slices.Delete(open, i, i+1)
			}
		case 2:
			write(t, h, series(string(rune('a'+rng.IntN(20))), 1+rng.IntN(30))...)
		case 3, 4:
			for _, b := range r.read(1 + rng.IntN(10)) {
				r.mark(feeds.Mark{Shard: b.Shard, Batch: &b, Done: rng.IntN(len(b.Messages) + 1)})
			}
		case 5:
			if rng.IntN(5) > 0 {
				continue
			}
			if _, err := h.Admin.Rewind(t.Context(), operator, "feed", admin.Point{Time: time.Now().Add(-time.Duration(rng.IntN(200)) * time.Millisecond)}); err != nil {
				t.Fatalf("Rewind: %v", err)
			}
			retake(t, h, r)
		}
		f, g := feedOf(t, h, "feed"), standing(t, h, "feed")
		if !g.Pending.Exact || g.Pending.N != int64(f.Pending) || !g.Oldest.Equal(f.Oldest) {
			t.Fatalf("step %d: %+v since %v, but the feed has %d since %v", step, g.Pending, g.Oldest, f.Pending, f.Oldest)
		}
		if step%8 == 0 {
			pending := admin.Filter{Statuses: []feeds.Status{feeds.StatusPending}}
			if got := search(t, h, "feed", pending, 1000); len(got) != f.Pending {
				t.Fatalf("step %d: %d of %d pending messages found", step, len(got), f.Pending)
			}
		}
	}
	for _, tx := range open {
		rollback(t, tx)
	}
}
