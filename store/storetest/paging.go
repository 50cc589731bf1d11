package storetest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
)

func testLargeTransactionInPages(t *testing.T, h Harness) {
	msgs := series("k", 5000)
	write(t, h, msgs...)
	r := joinAlone(t, h, "feed", longLease)
	expect(t, r.next(len(msgs), 97), msgs)
	r.idle()
}

// testLateCommitBetweenPages commits a transaction in the middle of the range that a reader pages
// through: its message is read once.
func testLateCommitBetweenPages(t *testing.T, h Harness) {
	r := joinAlone(t, h, "feed", longLease)
	before, late, after := series("k", 100), one("late"), series("k", 100)
	write(t, h, before...)
	a := begin(t, h, late)
	write(t, h, after...)
	got := r.read(7)
	commit(t, a)
	n := 0
	for _, b := range got {
		n += len(b.Messages)
	}
	want := append(append(before, late), after...)
	expect(t, append(got, r.next(len(want)-n, 7)...), want)
	r.idle()
}

// testPagingUnderWrites adds to a key while a reader pages through it, in step.
func testPagingUnderWrites(t *testing.T, h Harness) {
	r := joinAlone(t, h, "feed", longLease)
	pageUnderWrites(t, h, func(int) (*reader, []feeds.Batch) { return r, r.read(7) })
}

// testWanderingUnderWrites does the same with a reader that settles and is replaced from time to
// time.
func testWanderingUnderWrites(t *testing.T, h Harness) {
	r := joinAlone(t, h, "feed", longLease)
	pageUnderWrites(t, h, func(i int) (*reader, []feeds.Batch) {
		batches := r.read(7)
		r.settle(batches...)
		if i%10 == 9 {
			r.leave()
			r = joinAlone(t, h, "feed", longLease)
		}
		return r, batches
	})
}

// pageUnderWrites calls page after each of many writes; the last reader reads the rest.
func pageUnderWrites(t *testing.T, h Harness, page func(i int) (*reader, []feeds.Batch)) {
	want := series("k", 100)
	write(t, h, want...)
	var got []feeds.Batch
	var r *reader
	for i := range 30 {
		more := append(series("k", 2), one(fmt.Sprint("other", i)))
		write(t, h, more...)
		want = append(want, more...)

		var batches []feeds.Batch
		r, batches = page(i)
		got = append(got, batches...)
	}
	got = append(got, r.next(len(want)-len(flatten(got)), 7)...)
	expect(t, got, want)
	r.idle()
}

func testLimitSetsMore(t *testing.T, h Harness) {
	msgs := series("k", 200)
	write(t, h, msgs...)
	got := joinAlone(t, h, "feed", longLease).next(len(msgs), 3)
	expect(t, got, msgs)
	waiting := len(msgs)
	for _, b := range got {
		if len(b.Messages) > 30 { // "a few more" is not ten times as many
			t.Fatalf("got %d messages, asked for 3", len(b.Messages))
		}
		if waiting -= len(b.Messages); waiting > 0 && !b.More {
			t.Fatalf("More is not set, though %d of %d messages wait", waiting, len(msgs))
		}
	}
}

// testOnlyWantedShards reads one shard at a time, and no shard.
func testOnlyWantedShards(t *testing.T, h Harness) {
	var msgs []postrider.Message
	for k := range 50 {
		msgs = append(msgs, series(fmt.Sprint("k", k), 2)...)
	}
	write(t, h, msgs...)
	r := joinAlone(t, h, "feed", longLease)
	if batches := r.readShards(10); len(batches) > 0 {
		t.Fatalf("asked for no shard and got %d batches", len(batches))
	}
	var got []feeds.Batch
	eventually(t, "all messages arrive", func() bool {
		for _, s := range r.shards {
			got = append(got, r.readShards(10, s)...) // checks that the batch is from that shard
		}
		return len(flatten(got)) >= len(msgs)
	})
	expect(t, got, msgs)
}

// testFeedsAreIndependent checks that each feed has its own position, and that a new feed starts at
// the oldest message.
func testFeedsAreIndependent(t *testing.T, h Harness) {
	if h.OneFeed {
		refusesAnother(t, h)
		return
	}
	msgs := series("k", 10)
	write(t, h, msgs...)
	first := joinAlone(t, h, "first", longLease)
	batches := first.next(10, 100)
	expect(t, batches, msgs)
	first.settle(batches...)

	second := joinAlone(t, h, "second", longLease)
	expect(t, second.next(10, 100), msgs)
	second.leave() // without settling anything

	more := series("k", 5)
	write(t, h, more...)
	expect(t, first.next(5, 100), more)
	expect(t, joinAlone(t, h, "second", longLease).next(15, 100), append(msgs, more...))
}

// refusesAnother checks that a store with one feed names it when another one is opened.
func refusesAnother(t *testing.T, h Harness) {
	t.Helper()
	r := joinAlone(t, h, "the-first", longLease)
	for round := range 2 { // also after the first has left
		_, err := h.Store.Open(t.Context(), "second", feeds.Member{Lease: longLease})
		if err == nil || !strings.Contains(err.Error(), `"the-first"`) {
			t.Errorf("Open of a second feed: %v, want an error that names the first", err)
		}
		if round == 0 {
			r.leave()
		}
	}
	joinAlone(t, h, "the-first", longLease).idle()
}
