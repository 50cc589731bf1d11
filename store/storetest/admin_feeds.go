package storetest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
)

func feedOf(t *testing.T, h Harness, name string) admin.Feed {
	t.Helper()
	listed, err := h.Admin.ListFeeds(t.Context())
	if err != nil {
		t.Fatalf("Feeds: %v", err)
	}
	i := slices.IndexFunc(listed, func(f admin.Feed) bool { return f.Name == name })
	if i < 0 {
		t.Fatalf("there is no feed %q among %+v", name, listed)
	}
	return listed[i]
}

func testAdminFeeds(t *testing.T, h Harness) {
	if listed, err := h.Admin.ListFeeds(t.Context()); err != nil || len(listed) > 0 {
		t.Fatalf("got %+v, and %v; want no feed", listed, err)
	}
	r := joinAlone(t, h, "one", longLease)
	visit(t, h, "other")
	block(r, h, "a", 3, feeds.Deferral{Status: feeds.StatusDead})
	block(r, h, "b", 2, feeds.Deferral{Status: feeds.StatusRetry, Delay: time.Hour})
	block(r, h, "c", 1, feeds.Deferral{Status: feeds.StatusDead})
	act(t, h, admin.Park, admin.Filter{Key: "storetest/c"}, 1)
	write(t, h, series("d", 4)...)

	now := time.Now()
	f := feedOf(t, h, "one")
	if f.Paused || f.Members != 1 || f.Pending != 4 || f.Deferred != 4 || f.Dead != 1 || f.Parked != 1 || f.Blocked != 2 ||
		!near(f.Created, now) || !near(f.Oldest, now) || !near(f.Settled, now) || !near(f.NextRetry, now.Add(time.Hour)) {
		t.Errorf("got %+v", f)
	}
	for _, name := range h.feeds("one", "other")[1:] {
		if f := feedOf(t, h, name); f.Members != 0 || f.Pending != 10 || f.Deferred+f.Dead+f.Parked+f.Blocked != 0 || !f.NextRetry.IsZero() {
			t.Errorf("got %+v", f)
		}
	}
	r.settle(r.next(4, 10)...)
	if f := feedOf(t, h, "one"); f.Pending != 0 || !f.Oldest.IsZero() {
		t.Errorf("got %+v, want nothing pending", f)
	}
}

func testAdminAddFeed(t *testing.T, h Harness) {
	before, after := series("k", 5), series("k", 2)
	write(t, h, before...)
	if h.OneFeed {
		addOneFeed(t, h)
		write(t, h, after...)
		expect(t, joinAlone(t, h, "old", longLease).next(7, 100), append(before, after...))
		return
	}
	for name, oldest := range map[string]bool{"old": true, "new": false} {
		if err := h.Admin.AddFeed(t.Context(), operator, name, oldest); err != nil {
			t.Fatalf("AddFeed: %v", err)
		}
	}
	if err := h.Admin.AddFeed(t.Context(), operator, "new", true); !errors.Is(err, admin.ErrRefused) {
		t.Errorf("AddFeed of a feed that exists: %v, want ErrRefused", err)
	}
	write(t, h, after...)
	r := joinAlone(t, h, "new", longLease)
	expect(t, r.next(2, 100), after)
	r.idle()
	expect(t, joinAlone(t, h, "old", longLease).next(7, 100), append(before, after...))
}

// addOneFeed adds a feed to a store with a single feed, whose pending messages can only be
// delivered.
func addOneFeed(t *testing.T, h Harness) {
	t.Helper()
	if err := h.Admin.AddFeed(t.Context(), operator, "new", false); !errors.Is(err, admin.ErrRefused) {
		t.Errorf("AddFeed that leaves out what waits: %v, want ErrRefused", err)
	}
	if err := h.Admin.AddFeed(t.Context(), operator, "old", true); err != nil {
		t.Fatalf("AddFeed: %v", err)
	}
	for _, name := range []string{"old", "new"} {
		if err := h.Admin.AddFeed(t.Context(), operator, name, true); !errors.Is(err, admin.ErrRefused) {
			t.Errorf("AddFeed of %s: %v, want ErrRefused", name, err)
		}
	}
}

func testAdminRemoveFeed(t *testing.T, h Harness) {
	r, msgs := dead(t, h, 2)
	if err := h.Admin.RemoveFeed(t.Context(), operator, "feed"); !errors.Is(err, admin.ErrRefused) {
		t.Fatalf("RemoveFeed while a member serves it: %v, want ErrRefused", err)
	}
	r.leave()
	if err := h.Admin.RemoveFeed(t.Context(), operator, "feed"); err != nil {
		t.Fatalf("RemoveFeed: %v", err)
	}
	if err := h.Admin.RemoveFeed(t.Context(), operator, "feed"); !errors.Is(err, admin.ErrNoFeed) {
		t.Errorf("RemoveFeed of none: %v, want ErrNoFeed", err)
	}
	if listed, err := h.Admin.ListFeeds(t.Context()); err != nil || len(listed) > 0 {
		t.Errorf("got %+v, and %v; want no feed", listed, err)
	}
	expectDeferred(t, list(t, h, admin.Filter{}))
	r = joinAlone(t, h, "feed", longLease) // a new member
	expect(t, r.next(2, 10), msgs)
	if len(r.blocked()) > 0 {
		t.Error("a key is blocked by what was forgotten")
	}
}

func testAdminPauseFeed(t *testing.T, h Harness) {
	pause := func(paused bool) {
		t.Helper()
		if err := h.Admin.PauseFeed(t.Context(), operator, "feed", paused); err != nil {
			t.Fatalf("PauseFeed: %v", err)
		}
	}
	r := joinAlone(t, h, "feed", longLease)
	if r.balance().Paused {
		t.Error("a new feed is paused")
	}
	msgs := series("k", 4)
	write(t, h, msgs...)
	batches := r.next(4, 2)
	pause(true)
	share := r.balance()
	if !share.Paused || share.Quota != 0 || len(share.Shards) != h.Shards {
		t.Fatalf("got %+v, want a quota of 0, and what is held", share)
	}
	r.mark(feeds.Mark{Shard: batches[0].Shard, Batch: &batches[0], Done: 1}) // calls in flight still finish
	r.release(bare(slices.Clone(r.shards))...)
	if share := r.balance(); !share.Paused || len(share.Shards) > 0 {
		t.Errorf("got %+v, want nothing", share)
	}
	if !feedOf(t, h, "feed").Paused {
		t.Error("the admin API does not say that the feed is paused")
	}
	for _, name := range h.feeds("feed", "other")[1:] {
		if other := joinAlone(t, h, name, longLease); other.balance().Paused {
			t.Error("another feed is paused, too")
		}
	}
	pause(false)
	if share := r.balance(); share.Paused || len(share.Shards) != h.Shards {
		t.Errorf("got %+v, want all shards", share)
	}
	expect(t, r.next(3, 10), msgs[1:])
}

// rewind rewinds the feed and checks that n messages are sent again.
func rewind(t *testing.T, h Harness, to admin.Point, n int) {
	t.Helper()
	got, err := h.Admin.Rewind(t.Context(), operator, "feed", to)
	if err != nil {
		t.Fatalf("Rewind: %v", err)
	}
	if got != n {
		t.Errorf("Rewind: %d messages will be sent again, want %d", got, n)
	}
}

// retake balances until the member owns all shards again. It must have learnt that it lost them.
func retake(t *testing.T, h Harness, r *reader) {
	t.Helper()
	eventually(t, "the member holds all shards again", func() bool { return len(r.balance().Shards) == h.Shards })
}

func testAdminRewindToTime(t *testing.T, h Harness) {
	r := joinAlone(t, h, "feed", longLease)
	var msgs []postrider.Message
	var third time.Time // the time at which the third message was enqueued, by the clock of the store
	var batches []feeds.Batch
	for i := range 6 {
		m := one("k")
		msgs = append(msgs, m)
		write(t, h, m)
		batches = r.next(1, 10)
		if i == 2 {
			r.deferSome(batches, func(int) feeds.Deferral { return feeds.Deferral{Status: feeds.StatusRetry} })
			due := r.due(10).Messages
			third = due[0].EnqueuedAt
			r.conclude(delivered(due...)...)
		}
		r.settle(batches...)
	}
	rewind(t, h, admin.Point{Time: third}, 4)
	if f := feedOf(t, h, "feed"); f.Pending != 4 {
		t.Errorf("%d messages are pending, want 4", f.Pending)
	}
	if lost := r.tryMark(confirm(batches)...); !slices.Equal(lost, []int{batches[0].Shard}) {
		t.Errorf("the holder lost %v, want shard %d", lost, batches[0].Shard)
	}
	retake(t, h, r)
	expect(t, r.next(4, 10), msgs[2:])
	r.idle()
	rewind(t, h, admin.Point{Time: third.Add(-time.Hour)}, 2) // messages that are not settled do not count
	retake(t, h, r)
	expect(t, r.next(6, 10), msgs)
}

func testAdminRewindToMessage(t *testing.T, h Harness) {
	msgs := series("k", 6)
	write(t, h, msgs...)
	r := joinAlone(t, h, "feed", longLease)
	batches := r.next(6, 10)
	r.settle(batches...)
	if _, err := h.Admin.Rewind(t.Context(), operator, "feed", admin.Point{ID: postrider.NewID()}); !errors.Is(err, admin.ErrNoMessage) {
		t.Errorf("Rewind to nothing: %v, want ErrNoMessage", err)
	}
	if _, err := h.Admin.Rewind(t.Context(), operator, "none", admin.Point{ID: msgs[0].ID}); !errors.Is(err, admin.ErrNoFeed) {
		t.Errorf("Rewind of no feed: %v, want ErrNoFeed", err)
	}
	rewind(t, h, admin.Point{ID: msgs[4].ID}, 2)
	// A member that calls Balance before Settle must learn of the loss too.
	shard := batches[0].Shard
	if share := r.balance(); slices.Contains(share.Shards, shard) {
		t.Errorf("Balance returns %v: shard %d stays, as if nothing had happened", share.Shards, shard)
	}
	retake(t, h, r)
	again := r.next(2, 10)
	expect(t, again, msgs[4:])
	r.settle(again...)
	r.leave()
	joinAlone(t, h, "feed", longLease).idle()
}

// testAdminRewindWithinRead rewinds to a message within a read that is half settled: what was
// settled before that message stays settled.
func testAdminRewindWithinRead(t *testing.T, h Harness) {
	r := joinAlone(t, h, "feed", longLease)
	write(t, h, series("k", 3)...)
	r.settle(r.next(3, 10)...)
	r.idle()
	msgs := series("k", 8)
	write(t, h, msgs...)
	b := r.next(8, 10)[0]
	r.mark(feeds.Mark{Shard: b.Shard, Batch: &b, Done: 5})
	rewind(t, h, admin.Point{ID: msgs[3].ID}, 2)
	if f, g := feedOf(t, h, "feed"), standing(t, h, "feed"); f.Pending != 5 || g.Pending.N != 5 {
		t.Errorf("%d messages are pending, and by the gauges %d; want 5", f.Pending, g.Pending.N)
	}
	retake(t, h, r)
	expect(t, r.next(5, 10), msgs[3:])
}

// testAdminRewindKeepsPending: a rewind never moves forward, and does not change deferred messages.
func testAdminRewindKeepsPending(t *testing.T, h Harness) {
	r := joinAlone(t, h, "feed", longLease)
	blocked := block(r, h, "k", 2, feeds.Deferral{Status: feeds.StatusDead})
	msgs := series("k", 4)
	write(t, h, msgs...)
	batches := r.next(4, 10)
	r.mark(feeds.Mark{Shard: batches[0].Shard, Batch: &batches[0], Done: 1})
	rewind(t, h, admin.Point{Time: time.Now().Add(time.Hour)}, 0)
	rewind(t, h, admin.Point{ID: msgs[3].ID}, 0)
	_ = r.feed.Release(t.Context(), bare(r.shards)) // the store may or may not have fenced it
	retake(t, h, r)
	expect(t, r.next(3, 10), msgs[1:])

	handed := append(slices.Clone(blocked), msgs...)
	if h.OneFeed {
		handed = msgs
	}
	rewind(t, h, admin.Point{ID: blocked[0].ID}, len(handed)-3)
	retake(t, h, r)
	again := r.next(len(handed), 10)
	expect(t, again, handed)
	r.deferSome(again, asKey(feeds.Deferral{Status: feeds.StatusWaiting}))
	got := list(t, h, admin.Filter{})
	expectDeferred(t, got, append(blocked, msgs...)...)
	if got[0].Status != feeds.StatusDead || got[2].Status != feeds.StatusWaiting {
		t.Errorf("got %s and %s, want what was dead to stay so", got[0].Status, got[2].Status)
	}
}
