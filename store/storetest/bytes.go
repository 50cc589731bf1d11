package storetest

import (
	"bytes"
	"slices"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
)

const (
	large  = 250_000
	budget = 2 << 20 // eight messages fit, nine do not
)

// sized returns messages of a key with payloads of the given size.
func sized(key string, sizes ...int) []postrider.Message {
	var msgs []postrider.Message
	for _, n := range sizes {
		msgs = append(msgs, postrider.Event("storetest.large", postrider.Aggregate{Type: "storetest", ID: key}, bytes.Repeat([]byte{byte(len(msgs))}, n)))
	}
	return msgs
}

func larges(n int) []int { return slices.Repeat([]int{large}, n) }

func payloads(msgs []postrider.Message) int {
	sum := 0
	for _, m := range msgs {
		sum += len(m.Payload)
	}
	return sum
}

// nextBytes reads n messages with the byte budget for each shard, and checks that no page exceeds
// it.
func (r *reader) nextBytes(n int) []feeds.Batch {
	r.t.Helper()
	var batches []feeds.Batch
	got := 0
	eventually(r.t, "all messages arrive", func() bool {
		for got < n {
			var want []feeds.Demand
			for _, s := range r.shards {
				want = append(want, feeds.Demand{Shard: s, Limit: 1000, Bytes: budget})
			}
			more, err := r.feed.Read(r.t.Context(), want)
			if err != nil {
				r.t.Fatalf("Read: %v", err)
			}
			if len(more) == 0 {
				return false
			}
			for _, b := range more {
				sum := payloads(b.Messages)
				if len(b.Messages) == 0 && !b.More || sum > budget && len(b.Messages) > 1 {
					r.t.Fatalf("a batch has %d messages of %d bytes, want at most %d", len(b.Messages), sum, budget)
				}
				got += len(b.Messages)
				if !b.More && got < n && len(r.shards) == 1 {
					r.t.Fatal("More is not set, though bytes cut the page")
				}
			}
			batches = append(batches, more...)
		}
		return true
	})
	return batches
}

// testReadBytes reads far more than fits into one page, written in one transaction and in many.
func testReadBytes(t *testing.T, h Harness) {
	first := sized("k", larges(150)...)
	write(t, h, first...)
	r := joinAlone(t, h, "feed", longLease)
	batches := r.nextBytes(len(first))
	expect(t, batches, first)
	if n := len(batches); n > 25 {
		t.Errorf("it took %d pages, though 19 would do", n)
	}
	for i, b := range batches {
		if more := i < len(batches)-1; more && !b.More {
			t.Errorf("More of page %d is not set, though there is one behind it", i)
		}
	}
	r.settle(batches...)

	// From a transaction that was open while later ones were read.
	late := begin(t, h, sized("late", larges(75)...)...)
	second := sized("k", larges(75)...)
	for _, m := range second {
		write(t, h, m)
	}
	batches = r.nextBytes(len(second))
	expect(t, batches, second)
	r.settle(batches...)
	third := sized("k", larges(10)...)
	write(t, h, third...)
	commit(t, late)
	batches = r.nextBytes(85)
	var lates, thirds []postrider.Message
	for _, m := range flatten(batches) {
		if m.OrderKey() == "storetest/late" {
			lates = append(lates, m)
		} else {
			thirds = append(thirds, m)
		}
	}
	expect(t, []feeds.Batch{{Messages: thirds}}, third)
	for i, m := range lates {
		if len(lates) != 75 || m.Payload[0] != byte(i) {
			t.Fatalf("message %d of %d of the late transaction is out of order", i, len(lates))
		}
	}
	r.settle(batches...)
	r.idle()
}

// testReadBytesLarger: a message that is larger than the budget comes alone and delays no other.
func testReadBytesLarger(t *testing.T, h Harness) {
	msgs := sized("k", 10, 2*budget, 3*large, 0, budget, 0, budget+1, 5)
	write(t, h, msgs...)
	r := joinAlone(t, h, "feed", longLease)
	batches := r.nextBytes(len(msgs))
	expect(t, batches, msgs)
	for i, m := range flatten(batches) {
		if len(m.Payload) != len(msgs[i].Payload) {
			t.Errorf("message %d has %d bytes, want %d", i, len(m.Payload), len(msgs[i].Payload))
		}
	}
	r.settle(batches...)
	r.idle()
	r.leave()
	joinAlone(t, h, "feed", longLease).idle()
}

// testDueBytes reads deferred messages, and those that wait behind them, in pages.
func testDueBytes(t *testing.T, h Harness) {
	r := joinAlone(t, h, "feed", longLease)
	set := func(status feeds.Status, msgs []postrider.Message) {
		write(t, h, msgs...)
		batches := r.nextBytes(len(msgs))
		n := 0
		for _, b := range batches {
			r.deferSome([]feeds.Batch{b}, func(i int) feeds.Deferral {
				d := feeds.Deferral{Status: feeds.StatusWaiting, Blocking: true}
				if n+i == 0 {
					d.Status, d.Name = status, "name"
				}
				return d
			})
			n += len(b.Messages)
		}
		r.settle(batches...)
	}
	run := sized("run", larges(60)...)
	set(feeds.StatusRetry, run)
	held := sized("held", larges(30)...)
	set(feeds.StatusHeld, held)
	larger := sized("larger", 2*budget, 1)
	set(feeds.StatusRetry, larger)

	var sent []postrider.Message
	want := len(run) + len(held) + len(larger)
	for pages := 1; len(sent) < want; pages++ {
		due := r.dueOf(feeds.DueRequest{Shards: r.shards, Limit: 500, Bytes: budget}).Messages
		var msgs []postrider.Message
		for _, d := range due {
			msgs = append(msgs, d.Message)
		}
		if sum := payloads(msgs); len(due) == 0 || sum > budget && len(due) > 1 {
			t.Fatalf("page %d has %d messages of %d bytes, want at most %d", pages, len(due), sum, budget)
		}
		if pages > 30 {
			t.Fatalf("%d messages came in %d pages", len(sent), pages)
		}
		sent = append(sent, msgs...)
		r.conclude(delivered(due...)...)
	}
	expect(t, []feeds.Batch{{Messages: sent}}, append(append(run, held...), larger...))
	expectNothing(t, r.due(10))
}
