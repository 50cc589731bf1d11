package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
)

// hold writes n messages of a key and defers them all, the first one because its name is held.
func hold(r *reader, h Harness, key string, n int, name string) []postrider.Message {
	r.t.Helper()
	return block(r, h, key, n, feeds.Deferral{Status: feeds.StatusHeld, Name: name, Cause: "queue is full"})
}

// dueBut calls Due for all shards with held names.
func (r *reader) dueBut(limit int, probe bool, names ...string) feeds.Due {
	r.t.Helper()
	want := feeds.DueRequest{Shards: r.shards, Limit: limit}
	for _, shard := range r.shards {
		for _, name := range names {
			want.Held = append(want.Held, feeds.HeldName{Shard: shard, Name: name, Probe: probe})
		}
	}
	return r.dueOf(want)
}

func (r *reader) dueOf(want feeds.DueRequest) feeds.Due {
	r.t.Helper()
	due, err := r.feed.Due(r.t.Context(), want)
	if err != nil {
		r.t.Fatalf("Due: %v", err)
	}
	return due
}

func heldAgain(d feeds.Deferred, name string) feeds.Conclusion {
	return feeds.Conclusion{
		Shard: d.Shard, Seq: d.Seq, Status: feeds.StatusHeld, Name: name, Attempts: d.Attempts, Cause: "still full",
	}
}

func expectNothing(t *testing.T, due feeds.Due) {
	t.Helper()
	if len(due.Messages) > 0 || due.Next >= 0 {
		t.Fatalf("got %d messages, and %v until the next; want none at all", len(due.Messages), due.Next)
	}
}

// testHeldFields follows a message of a held name while the shard changes owners.
func testHeldFields(t *testing.T, h Harness) {
	r := joinAlone(t, h, "feed", longLease)
	msgs := hold(r, h, "k", 1, "orders")
	r.leave()

	r = joinAlone(t, h, "feed", longLease)
	if !r.balance().Deferred {
		t.Error("Share.Deferred is not set")
	}
	if got := r.blocked(); !slices.Equal(got, []string{msgs[0].OrderKey()}) {
		t.Errorf("blocked are %q, want the key", got)
	}
	expectNothing(t, r.dueBut(10, false, "orders"))
	expectNothing(t, r.dueBut(10, false, "other", "orders"))
	due := r.dueBut(10, false, "other", "Orders", "orders ", "order")
	expectDeferred(t, due.Messages, msgs...)
	got := due.Messages[0]
	if got.Status != feeds.StatusHeld || got.Name != "orders" || !got.Blocking || got.Attempts != 0 || got.LastError != "queue is full" ||
		!got.AvailableAt.IsZero() || !near(got.TriedAt, time.Now()) || !near(got.DeferredAt, time.Now()) || due.Next >= 0 {
		t.Errorf("got %+v, and %v until the next", got, due.Next)
	}
	if diff := difference(got.Message, msgs[0]); diff != "" {
		t.Error(diff)
	}

	// It is held under another name, then has another status, then is held again.
	again := heldAgain(got, "payments")
	again.Attempts = 4
	r.conclude(again)
	expectNothing(t, r.dueBut(10, false, "payments"))
	due = r.dueBut(10, false, "orders")
	expectDeferred(t, due.Messages, msgs...)
	if got := due.Messages[0]; got.Name != "payments" || got.Attempts != 4 || got.LastError != "still full" {
		t.Errorf("got %+v", got)
	}
	r.conclude(failed(got, time.Hour))
	if due := r.due(10); len(due.Messages) > 0 || due.Next < 59*time.Minute {
		t.Errorf("got %d messages, and %v until the next; want none within an hour", len(due.Messages), due.Next)
	}
	r.conclude(failed(got, 0))
	due = r.dueBut(10, false, "orders", "payments")
	expectStatus(t, due.Messages, feeds.StatusRetry)
	if due.Messages[0].Name != "" {
		t.Errorf("a message that is not held has the name %q", due.Messages[0].Name)
	}
	r.conclude(heldAgain(got, "orders"))
	if free := r.conclude(delivered(got)...); len(free) != 1 {
		t.Errorf("%q are free, want the key", free)
	}
	expectNothing(t, r.due(10))
	if r.balance().Deferred {
		t.Error("something is left")
	}
}

// testHeldProbe requests one message of a held name.
func testHeldProbe(t *testing.T, h Harness) {
	r := joinAlone(t, h, "feed", longLease)
	a := hold(r, h, "a", 3, "orders")
	hold(r, h, "a2", 1, "orders")
	b := hold(r, h, "b", 1, "payments")
	shard := r.dueBut(1, false, "payments").Messages[0].Shard

	want := feeds.DueRequest{Shards: r.shards, Limit: 100}
	for _, s := range r.shards {
		want.Held = append(want.Held, feeds.HeldName{Shard: s, Name: "orders", Probe: s == shard}, feeds.HeldName{Shard: s, Name: "payments"})
	}
	due := r.dueOf(want)
	expectDeferred(t, due.Messages, a[0]) // neither the next message of the name nor those that wait behind
	if due.Next >= 0 {
		t.Errorf("%v until the next, want none", due.Next)
	}
	r.conclude(heldAgain(due.Messages[0], "orders"))
	expectDeferred(t, r.dueOf(want).Messages, a[0])

	// Other messages do not displace a probe.
	for i := range want.Held {
		if want.Held[i].Name == "payments" {
			want.Held[i].Name = "other"
		}
	}
	hold(r, h, "b2", 1, "payments")
	want.Limit = 1
	expectDeferred(t, r.dueOf(want).Messages, a[0])
	expectDeferred(t, r.dueBut(1, false, "orders").Messages, b[0])
}

// testProbesTakeTurns: each probe of a name uses another message, so that a message that fails by
// itself does not keep its name held.
func testProbesTakeTurns(t *testing.T, h Harness) {
	r := joinAlone(t, h, "feed", longLease)
	for i := range 12 {
		hold(r, h, fmt.Sprint("k", i), 2, "orders")
	}
	all := make(map[int][]int64) // by shard, the first message of each key
	for _, d := range r.due(1000).Messages {
		if d.Status == feeds.StatusHeld {
			all[d.Shard] = append(all[d.Shard], d.Seq)
		}
	}
	for shard, seqs := range all {
		slices.Sort(seqs)
		after := int64(0)
		for turn := range 2*len(seqs) + 1 {
			due := r.dueOf(feeds.DueRequest{Shards: []int{shard}, Limit: 10, Held: []feeds.HeldName{
				{Shard: shard, Name: "orders", Probe: true, After: after},
			}})
			if want := seqs[turn%len(seqs)]; len(due.Messages) != 1 || due.Messages[0].Seq != want {
				t.Fatalf("behind %d: got %d messages, want the one at %d of %d", after, len(due.Messages), want, seqs)
			}
			after = due.Messages[0].Seq
		}
	}
}

// testOvertaken: messages overtake one of their key that keeps failing.
func testOvertaken(t *testing.T, h Harness) {
	r := joinAlone(t, h, "feed", longLease)
	msgs := block(r, h, "k", 3, feeds.Deferral{Status: feeds.StatusRetry})
	due := r.due(10).Messages
	expectDeferred(t, due, msgs...)
	late := due[0]
	r.conclude(feeds.Conclusion{
		Shard: late.Shard, Seq: late.Seq, Status: feeds.StatusRetry, Attempts: 1, Delay: time.Hour, Cause: "no", Overtaken: true,
	})
	due = r.due(10).Messages
	expectDeferred(t, due, msgs[1:]...)
	if free := r.conclude(delivered(due...)...); len(free) != 1 {
		t.Errorf("%q are free, want the key", free)
	}
	last := block(r, h, "k", 1, feeds.Deferral{Status: feeds.StatusRetry})
	due = r.due(10).Messages
	expectDeferred(t, due, last...)
	if free := r.conclude(feeds.Conclusion{
		Shard: due[0].Shard, Seq: due[0].Seq, Status: feeds.StatusDead, Attempts: 1, Cause: "no", Overtaken: true,
	}); len(free) != 1 {
		t.Errorf("%q are free, want the key of a dead letter that is overtaken", free)
	}
}

// testHeldBehindOthers: a message that is not the first of its key is neither sent nor used as a
// probe.
func testHeldBehindOthers(t *testing.T, h Harness) {
	msgs := series("k", 4)
	write(t, h, msgs...)
	r := joinAlone(t, h, "feed", longLease)
	batches := r.next(4, 10)
	deferrals := []feeds.Deferral{
		{Status: feeds.StatusDead}, {Status: feeds.StatusHeld, Name: "orders"}, {Status: feeds.StatusWaiting},
		{Status: feeds.StatusHeld, Name: "orders"},
	}
	r.deferSome(batches, func(n int) feeds.Deferral {
		d := deferrals[n]
		d.Blocking = true
		return d
	})
	r.settle(batches...)
	expectNothing(t, r.due(10))
	expectNothing(t, r.dueBut(10, true, "orders"))
	if h.Admin == nil {
		return
	}
	act(t, h, admin.Park, admin.Filter{ID: msgs[0].ID}, 1)
	expectDeferred(t, r.dueBut(10, true, "orders").Messages, msgs[1])
	due := r.due(10).Messages
	expectDeferred(t, due, msgs[1], msgs[2])
	r.conclude(delivered(due...)...)
	expectDeferred(t, r.due(10).Messages, msgs[3])
}

// testHeldKeyGoesOn unblocks a key whose second message is then held.
func testHeldKeyGoesOn(t *testing.T, h Harness) {
	r := joinAlone(t, h, "feed", longLease)
	msgs := hold(r, h, "k", 4, "orders")
	free := hold(r, h, "free", 1, "payments")
	due := r.dueBut(10, false, "payments").Messages
	expectDeferred(t, due, msgs...)
	expectStatus(t, due, feeds.StatusHeld, feeds.StatusWaiting, feeds.StatusWaiting, feeds.StatusWaiting)
	if free := r.conclude(append(delivered(due[0]), heldAgain(due[1], "orders"))...); len(free) > 0 {
		t.Errorf("%q are free, want none", free)
	}
	expectDeferred(t, r.dueBut(10, false, "orders").Messages, free...)
	due = r.dueBut(10, false, "payments").Messages
	expectDeferred(t, due, msgs[1:]...)
	expectStatus(t, due, feeds.StatusHeld, feeds.StatusWaiting, feeds.StatusWaiting)
	if free := r.conclude(delivered(due...)...); len(free) != 1 {
		t.Errorf("%q are free, want the key", free)
	}
}

// testHeldTakeTurns: released messages and due messages do not starve each other.
func testHeldTakeTurns(t *testing.T, h Harness) {
	r := joinAlone(t, h, "feed", longLease)
	var held, timed []postrider.Message
	for i := range 20 {
		held = append(held, hold(r, h, fmt.Sprint("h", i), 1, "orders")...)
		timed = append(timed, block(r, h, fmt.Sprint("t", i), 1, feeds.Deferral{Status: feeds.StatusRetry})...)
	}
	due := r.due(10).Messages
	var got [2][]postrider.ID
	for _, d := range due {
		i := 0
		if d.Status == feeds.StatusHeld {
			i = 1
		}
		got[i] = append(got[i], d.ID)
	}
	if len(got[0]) != 5 || len(got[1]) != 5 {
		t.Fatalf("%d are due and %d were held, want 5 each", len(got[0]), len(got[1]))
	}
	for i := range 5 {
		if got[1][i] != held[i].ID {
			t.Errorf("number %d of those held is not that of the log", i)
		}
	}
	expectDeferred(t, r.dueBut(100, false, "orders").Messages, timed...)
}

// testHeldMany holds 10,000 messages of two names, and releases one of them.
func testHeldMany(t *testing.T, h Harness) {
	const each, keys = 5000, 25
	names := []string{"orders", strings.Repeat("payments/", 400)}
	var msgs [2][]postrider.Message
	for i := range each {
		for n := range names {
			msgs[n] = append(msgs[n], one(fmt.Sprint(n, "/", i%keys)))
		}
	}
	write(t, h, slices.Concat(msgs[0], msgs[1])...)
	r := joinAlone(t, h, "feed", longLease)
	for got := 0; got < 2*each; {
		batches := r.read(1000)
		for _, b := range batches {
			r.deferSome([]feeds.Batch{b}, func(i int) feeds.Deferral {
				n := int(b.Messages[i].OrderKey()[len("storetest/")] - '0')
				return feeds.Deferral{Status: feeds.StatusHeld, Name: names[n]}
			})
			got += len(b.Messages)
		}
		r.settle(batches...)
	}
	expectNothing(t, r.dueBut(100, false, names...))
	if due := r.dueBut(100, true, names...).Messages; len(due) == 0 || len(due) > 2*len(r.shards) {
		t.Errorf("got %d probes of %d shards, want at most one a name", len(due), len(r.shards))
	}
	var sent []postrider.Message
	for len(sent) < each {
		due := r.dueBut(500, false, names[0]).Messages
		if len(due) == 0 || len(due) > 500 {
			t.Fatalf("got %d messages, with %d to come; want 500 at most", len(due), each-len(sent))
		}
		for _, d := range due {
			if d.Name != names[1] {
				t.Fatalf("got a message of %q", d.Name)
			}
			sent = append(sent, d.Message)
		}
		r.conclude(delivered(due...)...)
	}
	expect(t, []feeds.Batch{{Messages: sent}}, msgs[1]) // those of a key in the order of the log
	expectNothing(t, r.dueBut(100, false, names[0]))
	if len(r.due(100).Messages) != 100 {
		t.Error("the other name is not released")
	}
}

// testHeldLongNames distinguishes long names that differ in their last character.
func testHeldLongNames(t *testing.T, h Harness) {
	long := strings.Repeat("日本語 🚚", 400)
	r := joinAlone(t, h, "feed", longLease)
	a, b := hold(r, h, "a", 1, long+"a"), hold(r, h, "b", 1, long+"b")
	due := r.dueBut(10, false, long+"b").Messages
	expectDeferred(t, due, a...)
	if due[0].Name != long+"a" {
		t.Error("the name has changed")
	}
	expectDeferred(t, r.dueBut(10, false, long+"a").Messages, b...)
	empty := hold(r, h, "c", 1, "")
	expectDeferred(t, r.dueBut(10, false, long+"a", long+"b").Messages, empty...)
	expectDeferred(t, r.dueBut(10, true, "").Messages, append(append(empty, a...), b...)...)
}

// testHeldByOperators applies all acts of operators to held messages.
func testHeldByOperators(t *testing.T, h Harness) {
	if h.Admin == nil {
		t.Skip("n/a: no admin API")
	}
	r := joinAlone(t, h, "feed", longLease)
	a, b, c := hold(r, h, "a", 2, "orders"), hold(r, h, "b", 2, "orders"), hold(r, h, "c", 2, "orders")
	held := admin.Filter{Feed: "feed", Statuses: []feeds.Status{feeds.StatusHeld}}
	if counts, err := h.Admin.Count(t.Context(), admin.Filter{Feed: "feed"}, 0); err != nil || counts[feeds.StatusHeld] != 3 {
		t.Errorf("counted %v, and %v; want 3 held", counts, err)
	}
	if f := standing(t, h, "feed"); f.Deferred != (admin.DeferredCount{Held: 3, Waiting: 3, Blocked: 3, Exact: true}) {
		t.Errorf("deferred are %+v", f.Deferred)
	}
	if f := feedOf(t, h, "feed"); f.Deferred != 6 || f.Blocked != 3 || !f.NextRetry.IsZero() {
		t.Errorf("the feed is %+v", f)
	}
	page, err := h.Admin.List(t.Context(), held, nil, 10)
	if err != nil || len(page) != 3 || page[0].Name != "orders" || page[0].Status != feeds.StatusHeld {
		t.Fatalf("listed %+v, and %v", page, err)
	}
	if got := search(t, h, "feed", admin.Filter{Statuses: []feeds.Status{feeds.StatusHeld}}, 10); len(got) != 3 {
		t.Errorf("%d of the log are held, want 3", len(got))
	}
	act(t, h, admin.Discard, held, 0)

	// A retried message is sent even if its name is held.
	expectNothing(t, r.dueBut(10, false, "orders"))
	act(t, h, admin.Retry, admin.Filter{ID: a[0].ID}, 1)
	due := r.dueBut(10, false, "orders").Messages
	expectDeferred(t, due, a...)
	expectStatus(t, due, feeds.StatusRetry, feeds.StatusWaiting)
	r.conclude(heldAgain(due[0], "orders"))
	expectNothing(t, r.dueBut(10, false, "orders"))

	act(t, h, admin.Park, admin.Filter{ID: b[0].ID}, 1)
	expectDeferred(t, r.dueBut(10, false, "orders").Messages, b[1])
	act(t, h, admin.Skip, admin.Filter{ID: c[0].ID}, 1)
	expectDeferred(t, r.dueBut(10, false, "orders").Messages, b[1], c[1])
	for _, m := range []postrider.Message{b[0], c[0]} {
		if page, err := h.Admin.List(t.Context(), admin.Filter{ID: m.ID}, nil, 10); err != nil || len(page) != 1 || page[0].Name != "" {
			t.Errorf("listed %+v, and %v; want it without a name", page, err)
		}
	}
}
