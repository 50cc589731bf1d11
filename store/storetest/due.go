package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
)

// testDueOrder: Due sorts by priority, then by the time since the message became due, then by the
// order of the log. No message blocks here.
func testDueOrder(t *testing.T, h Harness) {
	now := time.Now()
	msgs := series("k", 7) // one key, so that all are in one shard
	for i, hours := range []int{1, 2, 3, 3, 1, 1} {
		msgs[i].DeliverAfter = now.Add(-time.Duration(hours) * time.Hour)
	}
	msgs[4].Priority, msgs[5].Priority = 5, -5
	write(t, h, msgs...)
	r := joinAlone(t, h, "feed", longLease)
	batches := r.next(len(msgs), 100)
	r.deferSome(batches, func(n int) feeds.Deferral {
		if n == 6 {
			return feeds.Deferral{Status: feeds.StatusRetry}
		}
		return feeds.Deferral{Status: feeds.StatusScheduled}
	})
	r.settle(batches...)
	if got := r.blocked(); len(got) > 0 {
		t.Errorf("blocked are %q, want none", got)
	}
	want := []postrider.Message{msgs[4], msgs[2], msgs[3], msgs[1], msgs[0], msgs[6], msgs[5]}
	due := r.due(100).Messages
	expectDeferred(t, due, want...)
	if got := due[1].AvailableAt.Sub(msgs[2].DeliverAfter).Abs(); got > time.Microsecond {
		t.Errorf("a message is due %v off its DeliverAfter", got)
	}
	expectDeferred(t, r.due(2).Messages, want[:2]...)
	if free := r.conclude(delivered(due...)...); len(free) > 0 {
		t.Errorf("%q are free, though nothing was blocked", free)
	}
}

// testDueNext waits for a scheduled message, while another one is due much later.
func testDueNext(t *testing.T, h Harness) {
	soon, later := one("a"), one("b")
	soon.DeliverAfter = time.Now().Add(time.Second)
	later.DeliverAfter = time.Now().Add(time.Hour)
	late := one("c")
	late.DeliverAfter = time.Now().Add(100 * 24 * time.Hour)
	write(t, h, soon, later, late)
	r := joinAlone(t, h, "feed", longLease)
	batches := r.next(3, 10)
	r.deferSome(batches, func(int) feeds.Deferral { return feeds.Deferral{Status: feeds.StatusScheduled} })
	r.settle(batches...)
	if !r.balance().Deferred {
		t.Error("Share.Deferred is not set")
	}
	eventually(t, "the first message is due", func() bool {
		due := r.due(10)
		if len(due.Messages) == 0 {
			if due.Next < 0 || due.Next > 30*time.Second {
				t.Fatalf("the next one is due in %v, want a second at most", due.Next)
			}
			return false
		}
		expectDeferred(t, due.Messages, soon)
		expectStatus(t, due.Messages, feeds.StatusScheduled)
		if due.Next < 59*time.Minute || due.Next > 61*time.Minute {
			t.Errorf("the next one is due in %v, want an hour", due.Next)
		}
		return true
	})
	if due, err := r.feed.Due(t.Context(), feeds.DueRequest{Limit: 10}); err != nil || len(due.Messages) > 0 {
		t.Errorf("of no shard %d messages are due, and %v", len(due.Messages), err)
	}
}

// testDueBehindHead: more messages wait behind the first than one answer returns.
func testDueBehindHead(t *testing.T, h Harness) {
	r := joinAlone(t, h, "feed", longLease)
	msgs := block(r, h, "k", 150, feeds.Deferral{Status: feeds.StatusRetry})
	due := r.due(1000).Messages
	expectDeferred(t, due, msgs[:101]...)
	if free := r.conclude(delivered(due...)...); len(free) > 0 {
		t.Errorf("%q are free, want none", free)
	}
	due = r.due(1000).Messages
	expectDeferred(t, due, msgs[101:]...)
	if free := r.conclude(delivered(due...)...); len(free) != 1 {
		t.Errorf("%q are free, want the key", free)
	}
}

// testDueStopsAtOther: a dead letter in between holds back the messages behind it.
func testDueStopsAtOther(t *testing.T, h Harness) {
	msgs := series("k", 4)
	write(t, h, msgs...)
	r := joinAlone(t, h, "feed", longLease)
	batches := r.next(4, 10)
	statuses := []feeds.Status{feeds.StatusRetry, feeds.StatusWaiting, feeds.StatusDead, feeds.StatusWaiting}
	r.deferSome(batches, func(n int) feeds.Deferral {
		return feeds.Deferral{Status: statuses[n], Blocking: true}
	})
	due := r.due(10).Messages
	expectDeferred(t, due, msgs[:2]...)
	if free := r.conclude(delivered(due...)...); len(free) > 0 {
		t.Errorf("%q are free, want none", free)
	}
	expectDeferred(t, r.due(10).Messages)
}

// testDrainWithFailures delivers the deferred messages of many keys with random failures and
// several members.
func testDrainWithFailures(t *testing.T, h Harness) {
	const keys, each = 12, 8
	var want []postrider.Message
	r := joinAlone(t, h, "feed", longLease)
	for k := range keys {
		want = append(want, block(r, h, fmt.Sprint("k", k), each, feeds.Deferral{Status: feeds.StatusRetry})...)
	}
	var got []postrider.Message
	free := make(map[string]int)
	steps := 0
	eventually(t, "all is delivered", func() bool {
		if steps++; steps%5 == 0 {
			r.leave()
			r = joinAlone(t, h, "feed", longLease)
		}
		stuck := make(map[string]bool)
		var done []feeds.Conclusion
		for _, d := range r.due(1 + rand.IntN(3*keys)).Messages {
			switch key := d.OrderKey(); {
			case stuck[key]:
			case rand.IntN(3) == 0:
				stuck[key] = true
				done = append(done, failed(d, 0))
			default:
				got = append(got, d.Message)
				done = append(done, delivered(d)...)
			}
		}
		for _, key := range r.conclude(done...) {
			free[key]++
		}
		return len(got) >= len(want)
	})
	expect(t, []feeds.Batch{{Messages: got}}, want)
	for key, n := range free {
		if n != 1 {
			t.Errorf("key %s became free %d times", key, n)
		}
	}
	if len(free) != keys || len(r.blocked()) > 0 || r.balance().Deferred {
		t.Errorf("%d of %d keys became free, %q are blocked", len(free), keys, r.blocked())
	}
}

// testDeferralConcurrent defers messages while others are delivered: none is left behind, and the
// order of keys is kept.
func testDeferralConcurrent(t *testing.T, h Harness) {
	const keys, each = 8, 20
	var want []postrider.Message
	for i := range each {
		for k := range keys {
			m := one(fmt.Sprint("k", k))
			m.Priority = i % 3
			want = append(want, m)
		}
	}
	write(t, h, want...)
	r := joinAlone(t, h, "feed", longLease)
	shards := make(map[int][]feeds.Batch)
	for _, b := range r.next(len(want), 1000) {
		shards[b.Shard] = append(shards[b.Shard], b)
	}
	ctx := context.WithoutCancel(t.Context())
	var running sync.WaitGroup
	for _, batches := range shards {
		running.Go(func() {
			for _, b := range batches {
				for i := range b.Messages {
					err := r.feed.Defer(ctx, []feeds.Deferral{{Batch: &b, Index: i, Status: feeds.StatusWaiting, Blocking: true}})
					if err != nil {
						t.Errorf("Defer: %v", err)
						return
					}
				}
			}
		})
	}
	defer running.Wait()
	var got []postrider.Message
	eventually(t, "all is delivered", func() bool {
		due := r.due(50).Messages
		for _, d := range due {
			got = append(got, d.Message)
		}
		r.conclude(delivered(due...)...)
		return len(got) >= len(want) || t.Failed()
	})
	expect(t, []feeds.Batch{{Messages: got}}, want)
	running.Wait()
	if keys := r.blocked(); len(keys) > 0 {
		t.Errorf("blocked are %q, want none", keys)
	}
}

// testSuspects lets members die one after another until one makes progress.
func testSuspects(t *testing.T, h Harness) {
	msgs := series("k", 3)
	write(t, h, msgs...)
	var batches []feeds.Batch
	for times := 1; times <= 3; times++ {
		r := joinAlone(t, h, "feed", shortLease)
		share := r.balance()
		var orphans, suspects []int
		if times > 1 {
			orphans = share.Shards
		}
		if times > 2 {
			suspects = share.Shards
		}
		if !slices.Equal(share.Orphans, orphans) || !slices.Equal(share.Suspects, suspects) {
			t.Fatalf("member %d: orphans are %v and suspects are %v, want %v and %v", times, share.Orphans, share.Suspects, orphans, suspects)
		}
		batches = r.next(3, 10)
		r.begin(feeds.Start{Batch: &batches[0]}, times)
		if times == 3 {
			r.mark(feeds.Mark{Shard: batches[0].Shard, Batch: &batches[0], Done: 1})
			if share := r.balance(); slices.Contains(share.Suspects, batches[0].Shard) || slices.Contains(share.Orphans, batches[0].Shard) {
				t.Error("a shard is suspect in spite of its progress")
			}
		}
	}
	r := joinAlone(t, h, "feed", longLease)
	share := r.balance()
	if suspects := share.Suspects; len(suspects) != h.Shards-1 || slices.Contains(suspects, batches[0].Shard) {
		t.Errorf("suspects are %v, want all but %d", suspects, batches[0].Shard)
	}
	if !slices.Equal(share.Orphans, share.Shards) {
		t.Errorf("orphans are %v, want all shards", share.Orphans)
	}
	r.leave()
	if share := joinAlone(t, h, "feed", longLease).balance(); len(share.Suspects)+len(share.Orphans) > 0 {
		t.Errorf("suspects are %v and orphans %v, though the last member has released its shards", share.Suspects, share.Orphans)
	}
}

// begin records the start of a message twice, as after a lost answer: the store counts members, not
// calls.
func (r *reader) begin(start feeds.Start, want int) {
	r.t.Helper()
	for range 2 {
		started, err := r.feed.Suspect(r.t.Context(), start)
		if err != nil || started != want {
			r.t.Fatalf("the message was begun by %d members, and %v; want %d", started, err, want)
		}
	}
}

func startOf(d feeds.Deferred) feeds.Start {
	return feeds.Start{Shard: d.Shard, Seq: d.Seq}
}

// testSuspectDeferred lets members die over a deferred message while other messages of its shard
// make progress.
func testSuspectDeferred(t *testing.T, h Harness) {
	block(joinAlone(t, h, "feed", shortLease), h, "k", 2, feeds.Deferral{Status: feeds.StatusRetry})
	var due []feeds.Deferred
	for times := 1; times <= 3; times++ {
		write(t, h, one("k"))
		r := joinAlone(t, h, "feed", shortLease) // waits until the lease has expired
		due = r.due(10).Messages
		if share := r.balance(); !slices.Equal(share.Orphans, share.Shards) || slices.Contains(share.Suspects, due[0].Shard) {
			t.Fatalf("member %d: orphans are %v and suspects are %v, want all shards, and not %d", times, share.Orphans, share.Suspects, due[0].Shard)
		}
		r.begin(startOf(due[1]), 1)
		r.begin(startOf(due[0]), times)
		batches := r.next(1, 10)
		r.deferSome(batches, asKey(feeds.Deferral{Status: feeds.StatusWaiting}))
		r.settle(batches...)
		r.begin(startOf(due[0]), times)
	}
	r := joinAlone(t, h, "feed", longLease)
	r.begin(startOf(due[0]), 4)
	r.begin(startOf(due[1]), 1)
	r.begin(startOf(due[0]), 1) // the earlier attempts have ended
	r.conclude(feeds.Conclusion{Shard: due[0].Shard, Seq: due[0].Seq, Status: feeds.StatusRetry, Attempts: 2})
	r.leave()
	r = joinAlone(t, h, "feed", longLease)
	r.begin(startOf(due[0]), 1) // and so has that of another member
	r.conclude(delivered(due[0])...)
	expectStatus(t, r.due(1).Messages[:1], feeds.StatusRetry)
}
