package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
)

// testSettlePartOfBatch confirms the messages of one batch one by one. Each time, the next member
// starts at the first unconfirmed one.
func testSettlePartOfBatch(t *testing.T, h Harness) {
	msgs := series("k", 6)
	write(t, h, msgs[:3]...)
	write(t, h, msgs[3:]...)
	for done := range msgs {
		r := joinAlone(t, h, "feed", longLease)
		batches := r.next(len(msgs)-done, 100)
		expect(t, batches, msgs[done:])
		r.mark(feeds.Mark{Shard: batches[0].Shard, Batch: &batches[0], Done: 1})
		r.leave()
	}
	joinAlone(t, h, "feed", longLease).idle()
}

// testSettleCoversEarlierBatches names only the latest batch, with none of its messages confirmed.
func testSettleCoversEarlierBatches(t *testing.T, h Harness) {
	msgs := series("k", 40)
	write(t, h, msgs...)
	r := joinAlone(t, h, "feed", longLease)
	batches := r.next(len(msgs), 4)
	last := batches[len(batches)-1]
	r.mark(feeds.Mark{Shard: last.Shard, Batch: &last})
	r.leave()
	expect(t, joinAlone(t, h, "feed", longLease).next(len(last.Messages), 100), last.Messages)
}

func testStaleSettleMovesNothing(t *testing.T, h Harness) {
	msgs := series("k", 40)
	write(t, h, msgs...)
	r := joinAlone(t, h, "feed", longLease)
	batches := r.next(len(msgs), 4)
	if len(batches) < 3 {
		t.Fatalf("got %d batches, want at least 3", len(batches))
	}
	newest := batches[len(batches)-2]
	r.settle(newest)
	r.mark(feeds.Mark{Shard: newest.Shard, Batch: &newest, Done: 1})
	r.mark(feeds.Mark{Shard: newest.Shard, Batch: &batches[0], Done: 1})
	r.release(feeds.Mark{Shard: newest.Shard, Batch: &batches[0]})
	r.leave()
	rest := batches[len(batches)-1:]
	expect(t, joinAlone(t, h, "feed", longLease).next(len(rest[0].Messages), 100), flatten(rest))
}

// testReleaseHandsOver checks that the next member starts at once, without a repetition or a gap.
func testReleaseHandsOver(t *testing.T, h Harness) {
	var want []postrider.Message
	var got []feeds.Batch
	for round := range 5 {
		var msgs []postrider.Message
		for k := range 20 {
			msgs = append(msgs, one(fmt.Sprint("k", k)))
		}
		write(t, h, msgs...)
		want = append(want, msgs...)

		r := join(t, h, "feed", longLease)
		if share := r.balance(); len(share.Shards) != h.Shards {
			t.Fatalf("round %d: the member holds %v right after the release, want all %d", round, share.Shards, h.Shards)
		}
		batches := r.read(2)
		got = append(got, batches...)
		r.release(confirm(batches)...)
		r.leave()
	}
	r := joinAlone(t, h, "feed", longLease)
	got = append(got, r.next(len(want)-len(flatten(got)), 100)...)
	expect(t, got, want)
	r.idle()
}

// testCrashRepeatsUnsettled abandons a member with half of its messages confirmed.
func testCrashRepeatsUnsettled(t *testing.T, h Harness) {
	var msgs []postrider.Message
	for k := range 10 {
		msgs = append(msgs, series(fmt.Sprint("k", k), 4)...)
	}
	write(t, h, msgs...)
	crashed := joinAlone(t, h, "feed", shortLease)
	batches := crashed.next(len(msgs), 3)
	// In each shard one batch is confirmed in part, and the later ones not at all.
	var left []postrider.Message
	seen := make(map[int]bool)
	for _, b := range batches {
		if seen[b.Shard] {
			left = append(left, b.Messages...)
			continue
		}
		seen[b.Shard] = true
		crashed.mark(feeds.Mark{Shard: b.Shard, Batch: &b, Done: len(b.Messages) / 2})
		left = append(left, b.Messages[len(b.Messages)/2:]...)
	}

	// Messages written in the meantime come after the rest of the same key.
	late := one("k0")
	write(t, h, late)
	r := joinAlone(t, h, "feed", longLease)
	got := r.next(len(left)+1, 100)
	expect(t, got, append(left, late))
	r.idle()
}

// testMoreUntilTheEnd crashes a member that has settled a part of what it read, and that has read what
// was written since. An answer without More tells the next one that it has seen all of that: it takes
// a message that comes later for one that was never sent.
func testMoreUntilTheEnd(t *testing.T, h Harness) {
	const early, late = 6, 20 // of each key
	var first, second []postrider.Message
	for k := range 4 {
		msgs := series(fmt.Sprint("k", k), early+late)
		first, second = append(first, msgs[:early]...), append(second, msgs[early:]...)
	}
	write(t, h, first...)
	crashed := joinAlone(t, h, "feed", shortLease)
	settled := crashed.read(early / 2)
	crashed.settle(settled...)
	left := len(first) - len(flatten(settled))
	crashed.next(left, early/2)
	write(t, h, second...)
	crashed.next(len(second), 100)

	r := joinAlone(t, h, "feed", longLease)
	for open := r.shards; len(open) > 0; {
		batches := r.ask(100, open...)
		open = nil
		for _, b := range batches {
			left -= len(b.Messages)
			if b.More {
				open = append(open, b.Shard)
			}
		}
	}
	if left += len(second); left > 0 {
		t.Errorf("%d messages were left after the last answer with More", left)
	}
}

// testDeferredAreMarked crashes a member that has deferred some messages and settled nothing. The
// next one, which asks, learns which they are, or does not get them: it must not send them from the
// log as well.
func testDeferredAreMarked(t *testing.T, h Harness) {
	msgs := series("k", 10) // none of them blocks the others
	write(t, h, msgs...)
	crashed := joinAlone(t, h, "feed", shortLease)
	batches := crashed.next(len(msgs), 100)
	all, deferred := flatten(batches), make(map[postrider.ID]bool)
	crashed.deferSome(batches, func(n int) (d feeds.Deferral) {
		if n%3 == 1 {
			deferred[all[n].ID] = true
			d = feeds.Deferral{Status: feeds.StatusRetry, Attempts: 1, Delay: time.Hour}
		}
		return d
	})

	r := joinAlone(t, h, "feed", longLease)
	var want []feeds.Demand
	for _, s := range r.shards {
		want = append(want, feeds.Demand{Shard: s, Limit: 3, Doubt: true})
	}
	fresh := 0
	eventually(t, "all messages that are not deferred arrive", func() bool {
		batches, err := r.feed.Read(t.Context(), want)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range batches {
			for i, m := range b.Messages {
				switch marked := slices.Contains(b.Deferred, i); {
				case marked != deferred[m.ID]:
					t.Fatalf("message %v is marked as deferred: %v", m.ID, marked)
				case !marked:
					fresh++
				}
			}
		}
		r.settle(batches...)
		return fresh == len(msgs)-len(deferred)
	})
	if fresh > len(msgs)-len(deferred) {
		t.Errorf("%d messages came, %d are not deferred", fresh, len(msgs)-len(deferred))
	}
}

// testRenewalSettlesNothing renews leases with marks without a batch: the next member reads
// everything.
func testRenewalSettlesNothing(t *testing.T, h Harness) {
	msgs := series("k", 6)
	write(t, h, msgs...)
	r := joinAlone(t, h, "feed", longLease)
	r.next(len(msgs), 2)
	r.mark(bare(r.shards)...)
	r.leave()
	expect(t, joinAlone(t, h, "feed", longLease).next(len(msgs), 100), msgs)
}

// testMarkOfAnEarlierEpoch confirms a batch that was read before the member released the shard and
// took it again: the mark moves nothing.
func testMarkOfAnEarlierEpoch(t *testing.T, h Harness) {
	msgs := series("k", 6)
	write(t, h, msgs...)
	r := joinAlone(t, h, "feed", longLease)
	old := r.next(len(msgs), 100)
	r.release(bare(r.shards)...)
	r.takeAll(h)
	r.mark(confirm(old)...)
	expect(t, r.next(len(msgs), 100), msgs)
	r.leave()
	expect(t, joinAlone(t, h, "feed", longLease).next(len(msgs), 100), msgs)
}

// testTakenBack: a member takes a shard again that another one has owned in between, without having
// noticed the loss. It continues where the other one stopped.
func testTakenBack(t *testing.T, h Harness) {
	msgs := series("k", 6)
	write(t, h, msgs...)
	first := joinAlone(t, h, "feed", shortLease)
	first.next(len(msgs), 100)
	second := joinAlone(t, h, "feed", longLease) // waits until the lease has expired
	batches := second.next(len(msgs), 100)
	second.mark(feeds.Mark{Shard: batches[0].Shard, Batch: &batches[0], Done: 2})
	second.leave()
	first.takeAll(h)
	expect(t, first.next(len(msgs)-2, 100), msgs[2:])
}
