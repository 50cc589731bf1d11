package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/postrider/postrider"
)

// setAside defers those messages of the batches, counted from 0, for which how returns a status.
func (r *reader) setAside(batches []postrider.Batch, how func(n int) postrider.Deferral) {
	r.t.Helper()
	var msgs []postrider.Deferral
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

// asKey is how the messages of a key are set aside whose first one has failed.
func asKey(first postrider.Deferral) func(n int) postrider.Deferral {
	first.Blocking = true
	return func(n int) postrider.Deferral {
		if n == 0 {
			return first
		}
		return postrider.Deferral{Status: postrider.StatusWaiting, Blocking: true}
	}
}

// block writes n messages of a key and sets all aside, the first one as told.
func block(r *reader, h Harness, key string, n int, first postrider.Deferral) []postrider.Message {
	r.t.Helper()
	msgs := series(key, n)
	write(r.t, h, msgs...)
	batches := r.next(n, 1000)
	r.setAside(batches, asKey(first))
	r.settle(batches...)
	return msgs
}

func (r *reader) due(limit int) postrider.Due {
	r.t.Helper()
	due, err := r.feed.Due(r.t.Context(), postrider.DueRequest{Shards: r.shards, Limit: limit})
	if err != nil {
		r.t.Fatalf("Due: %v", err)
	}
	return due
}

// conclude returns the keys that are free, sorted.
func (r *reader) conclude(done ...postrider.Conclusion) []string {
	r.t.Helper()
	free, err := r.feed.Conclude(r.t.Context(), done)
	if err != nil {
		r.t.Fatalf("Conclude: %v", err)
	}
	slices.Sort(free)
	return free
}

func delivered(msgs ...postrider.Deferred) []postrider.Conclusion {
	var done []postrider.Conclusion
	for _, d := range msgs {
		done = append(done, postrider.Conclusion{Shard: d.Shard, Seq: d.Seq, Delivered: true})
	}
	return done
}

func failed(d postrider.Deferred, delay time.Duration) postrider.Conclusion {
	return postrider.Conclusion{
		Shard: d.Shard, Seq: d.Seq, Status: postrider.StatusRetry, Attempts: d.Attempts + 1, Delay: delay, Cause: "failed again",
	}
}

// blocked returns the keys of all shards held, sorted.
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

// expectAside checks that exactly these messages came, in this order.
func expectAside(t *testing.T, got []postrider.Deferred, want ...postrider.Message) {
	t.Helper()
	var gotIDs, wantIDs []postrider.ID
	for _, d := range got {
		gotIDs = append(gotIDs, d.ID)
	}
	for _, m := range want {
		wantIDs = append(wantIDs, m.ID)
	}
	compare(t, "of what is set aside", gotIDs, wantIDs)
	if t.Failed() {
		t.FailNow()
	}
}

func expectStatus(t *testing.T, got []postrider.Deferred, want ...postrider.Status) {
	t.Helper()
	var statuses []postrider.Status
	for _, d := range got {
		statuses = append(statuses, d.Status)
	}
	if !slices.Equal(statuses, want) {
		t.Fatalf("got %v, want %v", statuses, want)
	}
}

// near allows for a clock that is not quite ours, and a machine that is busy.
func near(got, want time.Time) bool { return got.Sub(want).Abs() < 30*time.Second }
