package storetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/postrider/postrider/store/feeds"
)

const (
	// shortLease is for tests that wait until a lease expires, longLease for those in which none
	// must.
	shortLease = time.Second
	longLease  = time.Minute

	maxWait = 20 * time.Second // how long to wait for something that must happen
)

// reader is one member of a feed. It fails its test if the store returns an unexpected result. Its
// methods must be called by the test's own goroutine.
type reader struct {
	t      *testing.T
	feed   feeds.Feed
	shards []int // owned according to the last Balance or Release

	// What Balance said when it first returned a shard.
	unsure map[int]time.Time
	terms  map[int]int64
}

// join opens a feed and creates it if needed. It takes no shards yet.
func join(t *testing.T, h Harness, feed string, lease time.Duration) *reader {
	t.Helper()
	return joinAs(t, h, feed, feeds.Member{Name: t.Name(), Lease: lease, Create: true})
}

func joinAs(t *testing.T, h Harness, feed string, member feeds.Member) *reader {
	t.Helper()
	f, err := h.Store.Open(t.Context(), feed, member)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() {
		_ = f.Close(context.WithoutCancel(t.Context())) // the test may have closed it
	})
	return &reader{t: t, feed: f, unsure: map[int]time.Time{}, terms: map[int]int64{}}
}

// joinAlone opens a feed and waits until it owns every shard, as the only live member will.
func joinAlone(t *testing.T, h Harness, feed string, lease time.Duration) *reader {
	t.Helper()
	r := join(t, h, feed, lease)
	r.takeAll(h)
	return r
}

// takeAll waits until the only live member owns every shard.
func (r *reader) takeAll(h Harness) {
	r.t.Helper()
	eventually(r.t, "the only member holds all shards", func() bool {
		return len(r.balance().Shards) == h.Shards
	})
}

func (r *reader) balance() feeds.Share {
	r.t.Helper()
	share, err := r.feed.Balance(r.t.Context())
	if err != nil {
		r.t.Fatalf("Balance: %v", err)
	}
	for _, shard := range share.Shards {
		if slices.Contains(r.shards, shard) {
			continue
		}
		r.terms[shard], r.unsure[shard] = share.Terms[shard], time.Time{}
		if age, ok := share.Unsure[shard]; ok {
			r.unsure[shard] = time.Now().Add(-age)
		}
	}
	r.shards = slices.Clone(share.Shards)
	return share
}

// read requests limit messages of each owned shard.
func (r *reader) read(limit int) []feeds.Batch {
	r.t.Helper()
	return r.readShards(limit, r.shards...)
}

func (r *reader) readShards(limit int, shards ...int) []feeds.Batch {
	r.t.Helper()
	batches := r.ask(limit, shards...)
	return slices.DeleteFunc(batches, func(b feeds.Batch) bool { return len(b.Messages) == 0 })
}

// ask returns empty batches too: they have More.
func (r *reader) ask(limit int, shards ...int) []feeds.Batch {
	r.t.Helper()
	var want []feeds.Demand
	for _, s := range shards {
		want = append(want, feeds.Demand{Shard: s, Limit: limit})
	}
	batches, err := r.feed.Read(r.t.Context(), want)
	if err != nil {
		r.t.Fatalf("Read: %v", err)
	}
	seen := make(map[int]bool)
	for _, b := range batches {
		if !slices.Contains(shards, b.Shard) {
			r.t.Fatalf("Read returned a batch of shard %d, asked for were %v", b.Shard, shards)
		}
		if seen[b.Shard] {
			r.t.Fatalf("Read returned two batches of shard %d", b.Shard)
		}
		if len(b.Messages) == 0 && !b.More {
			r.t.Fatalf("Read returned an empty batch of shard %d", b.Shard)
		}
		seen[b.Shard] = true
	}
	return batches
}

// next reads until n messages have come, at most limit of a shard at a time.
func (r *reader) next(n, limit int) []feeds.Batch {
	r.t.Helper()
	var batches []feeds.Batch
	got := 0
	eventually(r.t, "all messages arrive", func() bool {
		for got < n {
			more := r.read(limit)
			if len(more) == 0 {
				return false
			}
			batches = append(batches, more...)
			got += len(flatten(more))
		}
		return true
	})
	if got > n {
		r.t.Fatalf("got %d messages, want %d", got, n)
	}
	return batches
}

// idle fails the test if there is anything to read.
func (r *reader) idle() {
	r.t.Helper()
	for range 3 {
		if batches := r.read(100); len(batches) > 0 {
			r.t.Fatalf("got %d messages, of shard %d first, want none", len(flatten(batches)), batches[0].Shard)
		}
	}
}

// settle confirms all messages of the batches.
func (r *reader) settle(batches ...feeds.Batch) {
	r.t.Helper()
	if len(batches) > 0 {
		r.mark(confirm(batches)...)
	}
}

func (r *reader) mark(marks ...feeds.Mark) {
	r.t.Helper()
	if lost := r.tryMark(marks...); len(lost) > 0 {
		r.t.Fatalf("Settle: lost shards %v, want none", lost)
	}
}

func (r *reader) tryMark(marks ...feeds.Mark) (lost []int) {
	r.t.Helper()
	lost, err := r.feed.Settle(r.t.Context(), marks)
	if err != nil {
		r.t.Fatalf("Settle: %v", err)
	}
	return lost
}

func (r *reader) release(marks ...feeds.Mark) {
	r.t.Helper()
	if err := r.feed.Release(r.t.Context(), marks); err != nil {
		r.t.Fatalf("Release: %v", err)
	}
	for _, m := range marks {
		r.shards = slices.DeleteFunc(r.shards, func(s int) bool { return s == m.Shard })
	}
}

// leave releases all shards without confirming anything, and closes the feed.
func (r *reader) leave() {
	r.t.Helper()
	r.release(bare(r.shards)...)
	r.close()
}

func (r *reader) close() {
	r.t.Helper()
	if err := r.feed.Close(r.t.Context()); err != nil {
		r.t.Fatalf("Close: %v", err)
	}
}

// bare returns marks that move nothing.
func bare(shards []int) []feeds.Mark {
	var marks []feeds.Mark
	for _, s := range shards {
		marks = append(marks, feeds.Mark{Shard: s})
	}
	return marks
}

// confirm returns one mark per shard, which confirms all messages of all the batches.
func confirm(batches []feeds.Batch) []feeds.Mark {
	latest := make(map[int]feeds.Mark)
	for _, b := range batches {
		latest[b.Shard] = feeds.Mark{Shard: b.Shard, Batch: &b, Done: len(b.Messages)}
	}
	var marks []feeds.Mark
	for _, m := range latest {
		marks = append(marks, m)
	}
	return marks
}

// eventually polls cond until it is true.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(maxWait)
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited %v in vain until %s", maxWait, what)
		}
	}
}
