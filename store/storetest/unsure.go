package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/postrider/postrider/store/feeds"
)

// expectUnsure fails unless for every shard the oldest attempt whose outcome may be unknown began
// between two times. The zero time means that there was none.
func (r *reader) expectUnsure(what string, from, to time.Time) {
	r.t.Helper()
	const margin = 200 * time.Millisecond // the store may keep whole milliseconds, and answers take time
	for _, shard := range r.shards {
		since := r.unsure[shard]
		if since.IsZero() != to.IsZero() || since.After(to.Add(margin)) || since.Before(from.Add(-margin)) {
			r.t.Errorf("%s: shard %d is unsure since %v, want %v to %v", what, shard, since, from, to)
		}
	}
}

// sent returns marks that move nothing, with an attempt that began at a time.
func sent(at time.Time, shards []int) []feeds.Mark {
	marks := bare(shards)
	for i := range marks {
		marks[i].Sent = at
	}
	return marks
}

// testDeferUnsure: of a deferred message a store keeps when the attempt began that may have delivered
// it, until an attempt has a known outcome.
func testDeferUnsure(t *testing.T, h Harness) {
	msgs := series("k", 3)
	write(t, h, msgs...)
	r := joinAlone(t, h, "feed", longLease)
	batches := r.next(3, 10)
	r.deferSome(batches, func(n int) feeds.Deferral {
		d := asKey(feeds.Deferral{Status: feeds.StatusRetry})(n)
		if n < 2 {
			d.Sent = time.Now().Add(-time.Duration(n+1) * time.Hour)
		}
		return d
	})
	r.settle(batches...)
	expect := func(what string, want ...time.Duration) []feeds.Deferred {
		t.Helper()
		due := r.due(10).Messages
		expectDeferred(t, due, msgs...)
		for i, d := range due {
			if off := d.Unsure - want[i]; off < -time.Second || off > 30*time.Second || (d.Unsure == 0) != (want[i] == 0) {
				t.Errorf("%s: message %d is unsure since %v, want %v", what, i, d.Unsure, want[i])
			}
		}
		return due
	}
	due := expect("deferred", time.Hour, 2*time.Hour, 0)
	again := failed(due[0], 0)
	again.Sent = time.Now().Add(-time.Minute)
	r.conclude(again)
	expect("after another attempt without an answer", time.Minute, 2*time.Hour, 0)
	r.conclude(failed(due[0], 0))
	expect("after an attempt that is known to have failed", 0, 2*time.Hour, 0)
}

// testUnsure hands the shards from one member to the next, in every way, and checks what each is told
// of attempts of the one before.
func testUnsure(t *testing.T, h Harness) {
	next := func() *reader { return joinAlone(t, h, "feed", shortLease) }
	terms := map[int]int64{}
	expect := func(r *reader, what string, from, to time.Time) {
		t.Helper()
		r.expectUnsure(what, from, to)
		for _, shard := range r.shards {
			if r.terms[shard] <= terms[shard] {
				t.Errorf("%s: term %d of shard %d, after %d", what, r.terms[shard], shard, terms[shard])
			}
			terms[shard] = r.terms[shard]
		}
	}
	a := next()
	never := time.Time{}
	expect(a, "the first owner", never, never)
	long := time.Now().Add(-time.Hour)
	a.mark(sent(long, a.shards)...)
	a.close()

	b := next()
	expect(b, "after a crash", long, long)
	b.close()
	c := next()
	expect(c, "after a second crash, without a settlement", long, long)
	c.release(sent(long, c.shards)...)
	c.close()

	d := next()
	expect(d, "released with an attempt of unknown outcome", long, long)
	d.leave()
	free := time.Now()
	e := next()
	expect(e, "released without one", never, never)
	taken := time.Now()
	e.close()

	f := next()
	expect(f, "after a crash before the first settlement", free, taken)
	time.Sleep(500 * time.Millisecond)
	marked := time.Now()
	f.mark(sent(marked, f.shards)...)
	f.close()
	g := next()
	expect(g, "after all was settled", marked, marked)
	g.leave()
}

// testUnsureAfterStaleMark lets a member settle what it read before it lost a shard and took it
// back: that settles nothing, so attempts since then must not be forgotten.
func testUnsureAfterStaleMark(t *testing.T, h Harness) {
	for n, leave := range []func(*reader){(*reader).close, (*reader).leave} {
		feed, count := fmt.Sprint("feed", n), 20*(n+1)
		if h.OneFeed {
			feed, count = "feed", 20
		}
		write(t, h, series(fmt.Sprint("k", n), 20)...)
		free := time.Now()
		first := joinAlone(t, h, feed, shortLease)
		stale := first.next(count, 100)
		second := joinAlone(t, h, feed, shortLease) // once the lease has expired
		leave(second)
		first.takeAll(h)
		taken := time.Now()
		time.Sleep(500 * time.Millisecond) // more than expectUnsure allows
		first.takeAll(h)
		marks := sent(taken, first.shards)
		for i := range marks {
			if marks[i].Shard == stale[0].Shard {
				marks[i] = feeds.Mark{Shard: stale[0].Shard, Batch: &stale[0], Done: len(stale[0].Messages), Sent: time.Now().Add(time.Hour)}
			}
		}
		first.mark(marks...)
		first.close()
		last := joinAlone(t, h, feed, longLease)
		last.expectUnsure("after a stale mark", free, taken)
		last.settle(last.next(count, 100)...)
		last.leave()
	}
}

// testFeedIDs checks that members of one feed get the same ID, and those of another feed another.
func testFeedIDs(t *testing.T, h Harness) {
	first, second := join(t, h, "feed", longLease), join(t, h, "feed", longLease)
	id := first.balance().ID
	if id == "" || second.balance().ID != id || first.balance().ID != id {
		t.Errorf("two members have the IDs %q and %q", id, second.balance().ID)
	}
	if h.OneFeed {
		return
	}
	if other := join(t, h, "other", longLease).balance().ID; other == "" || other == id {
		t.Errorf("two feeds have the IDs %q and %q", id, other)
	}
}
