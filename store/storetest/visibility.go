package storetest

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
)

func testRollbackIsInvisible(t *testing.T, h Harness) {
	r := joinAlone(t, h, "feed", longLease)
	tx := begin(t, h, series("k", 5)...)
	r.idle()
	rollback(t, tx)
	r.idle()

	kept := one("k")
	write(t, h, kept)
	expect(t, r.next(1, 10), []postrider.Message{kept})
	r.idle()
}

// testLateCommitIsNotLost covers the typical bug of an outbox that remembers the highest number it
// has read: the transaction that got the lower number commits after the higher one was delivered.
func testLateCommitIsNotLost(t *testing.T, h Harness) {
	r := joinAlone(t, h, "feed", longLease)
	late := one("late")
	a := begin(t, h, late)
	// Enough messages for every shard to pass the number of the late one.
	for round := range 3 {
		var early []postrider.Message
		for k := range 4 * h.Shards {
			early = append(early, one(fmt.Sprint("early", round, k)))
		}
		write(t, h, early...)
		batches := r.next(len(early), 3)
		expect(t, batches, early)
		r.settle(batches...)
		r.idle()
	}
	commit(t, a)
	batches := r.next(1, 10)
	expect(t, batches, []postrider.Message{late})
	r.settle(batches...)
	r.idle()

	// The recorded position agrees: the next member has nothing to read.
	r.leave()
	joinAlone(t, h, "feed", longLease).idle()
}

// testLateCommitsInterleaved keeps several transactions open and ends them in the order in which
// they began, in reverse, from both ends and from the middle, while a reader reads and is sometimes
// replaced.
func testLateCommitsInterleaved(t *testing.T, h Harness) {
	const open = 8
	for round, order := range [][open]int{
		{0, 1, 2, 3, 4, 5, 6, 7},
		{7, 6, 5, 4, 3, 2, 1, 0},
		{0, 7, 1, 6, 2, 5, 3, 4},
		{4, 3, 5, 2, 6, 1, 7, 0},
	} {
		var txs [open]Tx
		var msgs [open][]postrider.Message
		for i := range txs {
			msgs[i] = []postrider.Message{one(fmt.Sprint("a", round, i)), one(fmt.Sprint("b", round, i))}
			txs[i] = begin(t, h, msgs[i][0])
		}
		for i := range txs { // all second numbers are higher than the first ones
			enqueue(t, txs[i], msgs[i][1])
		}
		r := joinAlone(t, h, "feed", longLease)
		for n, i := range order {
			if i%4 == 3 {
				rollback(t, txs[i])
			} else {
				commit(t, txs[i])
				batches := r.next(len(msgs[i]), 10)
				expect(t, batches, msgs[i])
				r.settle(batches...)
			}
			r.idle()
			if n%3 == 2 {
				r.leave()
				r = joinAlone(t, h, "feed", longLease)
			}
		}
		r.leave()
	}
}

func testSpansShards(t *testing.T, h Harness) {
	r := joinAlone(t, h, "feed", longLease)
	var msgs []postrider.Message
	for k := range 200 {
		msgs = append(msgs, series(fmt.Sprint("k", k), 2)...)
	}
	for range 100 {
		msgs = append(msgs, postrider.Message{
			ID: postrider.NewID(), Type: "storetest.unordered", SchemaVersion: 1, OccurredAt: msgs[0].OccurredAt,
		})
	}
	tx := begin(t, h, msgs...)
	r.idle()
	commit(t, tx)

	batches := r.next(len(msgs), 11)
	used, keyless := make(map[int]bool), make(map[int]bool)
	seen := make(map[postrider.ID]bool)
	var keyed []feeds.Batch
	for _, b := range batches {
		used[b.Shard] = true
		for _, m := range b.Messages {
			if seen[m.ID] {
				t.Errorf("message %v came twice", m.ID)
			}
			seen[m.ID] = true
			if m.OrderKey() == "" {
				keyless[b.Shard] = true
			} else {
				keyed = append(keyed, feeds.Batch{Messages: []postrider.Message{m}})
			}
		}
	}
	expect(t, keyed, msgs[:400])
	if len(seen) != len(msgs) {
		t.Errorf("got %d messages, want %d", len(seen), len(msgs))
	}
	// With a reasonable hash, each of a few shards gets some of this many messages.
	if want := min(h.Shards, 8); len(used) < want || len(keyless) < want {
		t.Errorf("of %d shards, %d got messages, and %d got messages without a key", h.Shards, len(used), len(keyless))
	}
}

// testOrderOverTransactions writes a few keys in many consecutive transactions while they are read.
func testOrderOverTransactions(t *testing.T, h Harness) {
	r := joinAlone(t, h, "feed", longLease)
	var want []postrider.Message
	var got []feeds.Batch
	for i := range 150 {
		var msgs []postrider.Message
		for k := range 1 + i%3 {
			msgs = append(msgs, series(fmt.Sprint("k", (i+k)%5), 1+i%2)...)
		}
		write(t, h, msgs...)
		want = append(want, msgs...)
		if i%4 == 0 {
			batches := r.read(2)
			r.settle(batches...)
			got = append(got, batches...)
		}
	}
	rest := r.next(len(want)-len(flatten(got)), 2)
	expect(t, append(got, rest...), want)
}

// testLateElsewhere commits a large transaction late, while another shard is in the middle of later
// messages: that shard repeats and loses nothing.
func testLateElsewhere(t *testing.T, h Harness) {
	if h.Shards < 2 {
		t.Skip("n/a: needs two shards")
	}
	r := joinAlone(t, h, "feed", longLease)
	shards := make(map[int]string) // a key of each shard
	for i := 0; len(shards) < 2; i++ {
		key := fmt.Sprint("k", i)
		write(t, h, one(key))
		batches := r.next(1, 10)
		shards[batches[0].Shard] = key
		r.settle(batches...)
	}
	here := slices.Min(slices.Collect(maps.Keys(shards)))
	key, other := shards[here], ""
	for shard, k := range shards {
		if shard != here {
			other = k
		}
	}
	large := series(other, 2500)
	late := begin(t, h, large...)
	for range 3 { // so that the store records the open transaction
		write(t, h, one(key), one(other))
		r.settle(r.next(2, 10)...)
		r.idle()
	}
	msgs := series(key, 100)
	write(t, h, msgs...)
	batches := r.readShards(10, here)
	commit(t, late)
	batches = append(batches, r.next(len(large)+len(msgs)-len(flatten(batches)), 1000)...)
	expect(t, batches, append(msgs, large...))
	r.settle(batches...)
	r.idle()
}
