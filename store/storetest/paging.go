package storetest

import (
	"fmt"
	"testing"

	"github.com/postrider/postrider"
)

func testLargeTransactionInPages(t *testing.T, h Harness) {
	msgs := series("k", 5000)
	write(t, h, msgs...)
	r := joinAlone(t, h, "feed", longLease)
	expect(t, r.next(len(msgs), 97), msgs)
	r.idle()
}

// testPagingUnderWrites adds to a key while a reader pages through it, in step, and through a second reader that is
// replaced on the way.
func testPagingUnderWrites(t *testing.T, h Harness) {
	want := series("k", 100)
	write(t, h, want...)
	steady, wandering := joinAlone(t, h, "steady", longLease), joinAlone(t, h, "wandering", longLease)
	var gotSteady, gotWandering []postrider.Batch
	for i := range 30 {
		more := append(series("k", 2), one(fmt.Sprint("other", i)))
		write(t, h, more...)
		want = append(want, more...)

		gotSteady = append(gotSteady, steady.read(7)...)
		batches := wandering.read(7)
		wandering.settle(batches...)
		gotWandering = append(gotWandering, batches...)
		if i%10 == 9 {
			wandering.leave()
			wandering = joinAlone(t, h, "wandering", longLease)
		}
	}
	gotSteady = append(gotSteady, steady.next(len(want)-len(flatten(gotSteady)), 7)...)
	gotWandering = append(gotWandering, wandering.next(len(want)-len(flatten(gotWandering)), 7)...)
	expect(t, gotSteady, want)
	expect(t, gotWandering, want)
	steady.idle()
	wandering.idle()
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

// testOnlyWantedShards reads one shard at a time, and nothing when nothing is asked for.
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
	var got []postrider.Batch
	eventually(t, "all messages arrive", func() bool {
		for _, s := range r.shards {
			got = append(got, r.readShards(10, s)...) // which checks that the batch is of that shard
		}
		return len(flatten(got)) >= len(msgs)
	})
	expect(t, got, msgs)
}

// testFeedsAreIndependent checks that a feed's progress is its own, and that a new feed starts at the oldest message.
func testFeedsAreIndependent(t *testing.T, h Harness) {
	msgs := series("k", 10)
	write(t, h, msgs...)
	first := joinAlone(t, h, "first", longLease)
	batches := first.next(10, 100)
	expect(t, batches, msgs)
	first.settle(batches...)

	second := joinAlone(t, h, "second", longLease)
	expect(t, second.next(10, 100), msgs)
	second.leave() // having settled nothing

	more := series("k", 5)
	write(t, h, more...)
	expect(t, first.next(5, 100), more)
	expect(t, joinAlone(t, h, "second", longLease).next(15, 100), append(msgs, more...))
}
