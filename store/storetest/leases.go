package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/postrider/postrider/store/feeds"
)

// testFence lets a member return after others have taken its shards.
func testFence(t *testing.T, h Harness) {
	msgs := series("k", 20)
	write(t, h, msgs...)
	old := joinAlone(t, h, "feed", shortLease)
	held := slices.Clone(old.shards)
	stale := old.next(len(msgs), 100)
	shard := stale[0].Shard

	taker := joinAlone(t, h, "feed", longLease) // waits until the lease has expired
	marks := bare(held)
	for i := range marks {
		if marks[i].Shard == shard {
			marks[i] = confirm(stale)[0]
		}
	}
	lost := old.tryMark(marks...)
	slices.Sort(lost)
	slices.Sort(held)
	if !slices.Equal(lost, held) {
		t.Errorf("the old member lost %v, want all of %v", lost, held)
	}
	// Whether this returns an error does not matter, only that the new owner is not affected.
	_ = old.feed.Release(t.Context(), marks)

	batches := taker.next(len(msgs), 4)
	expect(t, batches, msgs) // the late confirmation has moved nothing
	taker.mark(feeds.Mark{Shard: shard, Batch: &batches[0], Done: 2})
	if lost := old.tryMark(confirm(stale)...); len(lost) != 1 {
		t.Errorf("the old member lost %v, want shard %d", lost, shard)
	}
	taker.mark(bare(taker.shards)...) // nor released any shard
	taker.leave()
	old.close()
	expect(t, joinAlone(t, h, "feed", longLease).next(len(msgs)-2, 100), msgs[2:])
}

// testSettleRenews keeps shards for several times the lease with marks that move nothing, next to a
// member that takes any free shard.
func testSettleRenews(t *testing.T, h Harness) {
	const lease = 2 * shortLease
	for attempt := range 5 {
		feed := fmt.Sprint("feed", attempt)
		if h.OneFeed {
			feed = "feed"
		}
		holder, rival := joinAlone(t, h, feed, lease), join(t, h, feed, lease)
		started := time.Now()
		renewed, late := started, false
		eventually(t, "two leases have passed", func() bool {
			lost := holder.tryMark(bare(holder.shards)...)
			late = late || time.Since(renewed) >= lease/2
			renewed = time.Now()
			taken := rival.balance().Shards
			if !late && len(lost)+len(taken) > 0 {
				t.Fatalf("after %v: the holder lost %v and the rival took %v", time.Since(started), lost, taken)
			}
			return late || time.Since(started) > 2*lease
		})
		if !late {
			return
		}
		t.Logf("attempt %d: this machine stood still for longer than a lease can bear", attempt)
		holder.close()
		rival.close()
	}
	t.Fatal("this machine is too busy to renew a lease in time")
}

// testCloseKeepsLease checks that Close without Release frees no shard, and removes the member from
// the fair share.
func testCloseKeepsLease(t *testing.T, h Harness) {
	joinAlone(t, h, "feed", longLease).close()
	share := join(t, h, "feed", longLease).balance()
	if len(share.Shards) != 0 || share.Members != 1 || share.Quota != h.Shards {
		t.Errorf("got %+v, want no shards, a quota of %d and one member", share, h.Shards)
	}
}

func testFairShare(t *testing.T, h Harness) {
	one := joinAlone(t, h, "feed", longLease)
	two := join(t, h, "feed", longLease)
	settleDown(t, h, one, two)

	one.release(bare(slices.Clone(one.shards))...)
	if share := two.balance(); len(share.Shards) > share.Quota || share.Quota > (h.Shards+1)/2 {
		t.Errorf("with all others free, one of two members took %v, its quota being %d", share.Shards, share.Quota)
	}
	settleDown(t, h, one, two)

	three := join(t, h, "feed", longLease)
	settleDown(t, h, one, two, three)
	two.leave()
	settleDown(t, h, one, three)
	one.leave()
	settleDown(t, h, three)
}

// testDeadMemberIsReplaced checks that a dead member loses its shards and its share.
func testDeadMemberIsReplaced(t *testing.T, h Harness) {
	dead := joinAlone(t, h, "feed", shortLease)
	r := join(t, h, "feed", shortLease)
	// Either may lose its lease on a busy machine. Only the dead one must have been counted and
	// have owned shards.
	if share := r.balance(); share.Members > 2 || len(dead.shards) == 0 {
		t.Fatalf("got %+v, want at most two members", share)
	}
	eventually(t, "the survivor holds all shards as the only member", func() bool {
		share := r.balance()
		if len(r.shards) > 0 {
			r.tryMark(bare(r.shards)...)
		}
		return share.Members == 1 && share.Quota == h.Shards && len(share.Shards) == h.Shards
	})
}

// settleDown balances and releases the surplus until each member has its fair share.
func settleDown(t *testing.T, h Harness, members ...*reader) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d members have a fair share each", len(members)), func() bool {
		fair, holders := true, make(map[int]int)
		for _, r := range members {
			share := r.balance()
			if len(share.Shards) > share.Quota {
				r.release(bare(share.Shards[share.Quota:])...)
			}
			low := h.Shards / len(members)
			high := (h.Shards + len(members) - 1) / len(members)
			fair = fair && share.Members == len(members) && len(r.shards) >= low && len(r.shards) <= high
		}
		for _, r := range members {
			for _, s := range r.shards {
				if holders[s]++; holders[s] > 1 {
					t.Fatalf("shard %d is held by two members", s)
				}
			}
		}
		return fair && len(holders) == h.Shards
	})
}

// testCancelledContext checks that a cancelled call returns an error and can be repeated.
func testCancelledContext(t *testing.T, h Harness) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tx := h.Begin(t)
	if err := tx.Enqueue(ctx, one("k")); err == nil {
		t.Error("Enqueue: no error")
	}
	_ = tx.Rollback() // the database may have ended the transaction already
	if _, err := h.Store.Open(ctx, "feed", feeds.Member{Lease: longLease}); err == nil {
		t.Error("Open: no error")
	}

	msgs := series("k", 10)
	write(t, h, msgs...)
	r := joinAlone(t, h, "feed", longLease)
	if _, err := r.feed.Read(ctx, []feeds.Demand{{Shard: r.shards[0], Limit: 10}}); err == nil {
		t.Error("Read: no error")
	}
	if _, err := r.feed.Balance(ctx); err == nil {
		t.Error("Balance: no error")
	}
	if _, err := r.feed.Settle(ctx, bare(r.shards)); err == nil {
		t.Error("Settle: no error")
	}
	if err := r.feed.Release(ctx, bare(r.shards)); err == nil {
		t.Error("Release: no error")
	}
	// A store that drops its connection may reset the feed, which costs only a new Balance.
	eventually(t, "the feed works again", func() bool {
		_, err := r.feed.Read(t.Context(), nil)
		if err != nil && !errors.Is(err, feeds.ErrReset) {
			t.Fatalf("Read: %v", err)
		}
		return err == nil && len(r.balance().Shards) == h.Shards
	})
	expect(t, r.next(len(msgs), 100), msgs)
	r.idle()
}
