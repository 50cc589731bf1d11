package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
)

// deferSome defers the messages of the batches, numbered from 0, for which how returns a status.
func (r *reader) deferSome(batches []feeds.Batch, how func(n int) feeds.Deferral) {
	r.t.Helper()
	var msgs []feeds.Deferral
	n := 0
	for _, b := range batches {
		for i := range b.Messages {
			if d := how(n); d.Status != "" {
				d.Batch, d.Index = &b, i
				msgs = append(msgs, d)
			}
			n++
		}
	}
	if err := r.feed.Defer(r.t.Context(), msgs); err != nil {
		r.t.Fatalf("Defer: %v", err)
	}
}

// asKey returns the deferrals of the messages of a key whose first one has failed.
func asKey(first feeds.Deferral) func(n int) feeds.Deferral {
	first.Blocking = true
	return func(n int) feeds.Deferral {
		if n == 0 {
			return first
		}
		return feeds.Deferral{Status: feeds.StatusWaiting, Blocking: true}
	}
}

// block writes n messages of a key and defers them all, the first one as given.
func block(r *reader, h Harness, key string, n int, first feeds.Deferral) []postrider.Message {
	r.t.Helper()
	msgs := series(key, n)
	write(r.t, h, msgs...)
	batches := r.next(n, 1000)
	r.deferSome(batches, asKey(first))
	r.settle(batches...)
	return msgs
}

func (r *reader) due(limit int) feeds.Due {
	r.t.Helper()
	due, err := r.feed.Due(r.t.Context(), feeds.DueRequest{Shards: r.shards, Limit: limit})
	if err != nil {
		r.t.Fatalf("Due: %v", err)
	}
	return due
}

// conclude returns the keys that are no longer blocked, sorted.
func (r *reader) conclude(done ...feeds.Conclusion) []string {
	r.t.Helper()
	free, err := r.feed.Conclude(r.t.Context(), done)
	if err != nil {
		r.t.Fatalf("Conclude: %v", err)
	}
	slices.Sort(free)
	return free
}

func delivered(msgs ...feeds.Deferred) []feeds.Conclusion {
	var done []feeds.Conclusion
	for _, d := range msgs {
		done = append(done, feeds.Conclusion{Shard: d.Shard, Seq: d.Seq, Delivered: true})
	}
	return done
}

func failed(d feeds.Deferred, delay time.Duration) feeds.Conclusion {
	return feeds.Conclusion{
		Shard: d.Shard, Seq: d.Seq, Status: feeds.StatusRetry, Attempts: d.Attempts + 1, Delay: delay, Cause: "failed again",
	}
}

// blocked returns the blocked keys of all owned shards, sorted.
func (r *reader) blocked() []string {
	r.t.Helper()
	var keys []string
	for _, s := range r.shards {
		more, err := r.feed.Blocked(r.t.Context(), s)
		if err != nil {
			r.t.Fatalf("Blocked: %v", err)
		}
		keys = append(keys, more...)
	}
	slices.Sort(keys)
	return keys
}

// expectDeferred checks that exactly these messages were returned, in this order.
func expectDeferred(t *testing.T, got []feeds.Deferred, want ...postrider.Message) {
	t.Helper()
	var gotIDs, wantIDs []postrider.ID
	for _, d := range got {
		gotIDs = append(gotIDs, d.ID)
	}
	for _, m := range want {
		wantIDs = append(wantIDs, m.ID)
	}
	compare(t, "of what is deferred", gotIDs, wantIDs)
	if t.Failed() {
		t.FailNow()
	}
}

func expectStatus(t *testing.T, got []feeds.Deferred, want ...feeds.Status) {
	t.Helper()
	var statuses []feeds.Status
	for _, d := range got {
		statuses = append(statuses, d.Status)
	}
	if !slices.Equal(statuses, want) {
		t.Fatalf("got %v, want %v", statuses, want)
	}
}

// near compares times of different clocks on a busy machine.
func near(got, want time.Time) bool { return got.Sub(want).Abs() < 30*time.Second }
