package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
)

var deferralTests = []test{
	{"DeferredFields", testDeferredFields},
	{"BlockedKeyGoesOn", testBlockedKeyGoesOn},
	{"WaitingForNothing", testWaitingForNothing},
	{"WaitingComesFirst", testWaitingComesFirst},
	{"DeferTwice", testDeferTwice},
	{"DeferAgainAfterWork", testDeferAgainAfterWork},
	{"DeferUnsure", testDeferUnsure},
	{"DeferredAreMarked", testDeferredAreMarked},
	{"DeferIsFenced", testDeferIsFenced},
	{"DeferAllOrNone", testDeferAllOrNone},
	{"DeadIsNeverDue", testDeadIsNeverDue},
	{"FeedsDeferApart", testFeedsDeferApart},

	{"DueOrder", testDueOrder},
	{"DueNext", testDueNext},
	{"DueBehindHead", testDueBehindHead},
	{"DueStopsAtOther", testDueStopsAtOther},
	{"DrainWithFailures", testDrainWithFailures},
	{"DeferralConcurrent", testDeferralConcurrent},

	{"HeldFields", testHeldFields},
	{"HeldProbe", testHeldProbe},
	{"ProbesTakeTurns", testProbesTakeTurns},
	{"Overtaken", testOvertaken},
	{"HeldBehindOthers", testHeldBehindOthers},
	{"HeldKeyGoesOn", testHeldKeyGoesOn},
	{"HeldTakeTurns", testHeldTakeTurns},
	{"HeldMany", testHeldMany},
	{"HeldLongNames", testHeldLongNames},
	{"HeldByOperators", testHeldByOperators},

	{"ReadBytes", testReadBytes},
	{"ReadBytesLarger", testReadBytesLarger},
	{"DueBytes", testDueBytes},

	{"Problems", testProblems},
	{"ProblemTexts", testProblemTexts},
	{"ProblemsAreBounded", testProblemsAreBounded},

	{"Suspects", testSuspects},
	{"SuspectDeferred", testSuspectDeferred},
}

// testDeferredFields checks that all fields of a deferred message come back.
func testDeferredFields(t *testing.T, h Harness) {
	want := postrider.Event("storetest.happened", postrider.Aggregate{Type: "storetest", ID: "k"}, []byte("\x00\xff payload"))
	want.Headers = map[string]string{"h": "v"}
	want.Topic, want.RoutingKey, want.TenantID, want.DedupKey, want.SchemaID = "topic", "routing", "tenant", "dedup", "schema"
	want.CorrelationID, want.CausationID, want.Priority = "correlation", "causation", 3
	want.DeliverAfter = time.Now().Add(-time.Hour)
	write(t, h, want)
	r := joinAlone(t, h, "feed", longLease)
	batches := r.next(1, 10)
	r.deferSome(batches, asKey(feeds.Deferral{Status: feeds.StatusRetry, Attempts: 2, Cause: "refused: \"no\""}))
	r.settle(batches...)
	r.leave()

	r = joinAlone(t, h, "feed", longLease)
	if !r.balance().Deferred {
		t.Error("Share.Deferred is not set")
	}
	due := r.due(10)
	expectDeferred(t, due.Messages, want)
	got := due.Messages[0]
	if diff := difference(got.Message, want); diff != "" {
		t.Error(diff)
	}
	if got.Feed != "feed" || got.Shard != batches[0].Shard || got.Status != feeds.StatusRetry || !got.Blocking ||
		got.Attempts != 2 || got.LastError != "refused: \"no\"" || got.Job != 0 {
		t.Errorf("got %+v", got)
	}
	now := time.Now()
	for name, at := range map[string]time.Time{
		"EnqueuedAt": got.EnqueuedAt, "DeferredAt": got.DeferredAt, "TriedAt": got.TriedAt, "AvailableAt": got.AvailableAt,
	} {
		if !near(at, now) {
			t.Errorf("%s is %v, want about %v", name, at, now)
		}
	}
	if got.EnqueuedAt.After(got.DeferredAt) {
		t.Errorf("enqueued at %v and deferred at %v", got.EnqueuedAt, got.DeferredAt)
	}
	got.Payload[0], got.Headers["h"] = 'X', "spoilt"
	if diff := difference(r.due(10).Messages[0].Message, want); diff != "" {
		t.Errorf("after a change to what was handed out: %s", diff)
	}
}

// testBlockedKeyGoesOn follows a key from its first failure until it is no longer blocked.
func testBlockedKeyGoesOn(t *testing.T, h Harness) {
	first := joinAlone(t, h, "feed", longLease)
	msgs := block(first, h, "k", 4, feeds.Deferral{Status: feeds.StatusRetry, Attempts: 1, Cause: "refused"})
	first.leave()

	r := joinAlone(t, h, "feed", longLease)
	r.idle()
	key := msgs[0].OrderKey()
	if got := r.blocked(); !slices.Equal(got, []string{key}) {
		t.Errorf("blocked are %q, want %q", got, key)
	}
	due := r.due(100).Messages
	expectDeferred(t, due, msgs...)
	expectStatus(t, due, feeds.StatusRetry, feeds.StatusWaiting, feeds.StatusWaiting, feeds.StatusWaiting)

	// The second one fails, so the rest must wait.
	if free := r.conclude(append(delivered(due[0]), failed(due[1], time.Hour))...); len(free) > 0 {
		t.Errorf("%q are free, want none", free)
	}
	if due := r.due(100); len(due.Messages) > 0 || due.Next < 59*time.Minute || due.Next > 61*time.Minute {
		t.Errorf("got %d messages, and %v until the next, want none within an hour", len(due.Messages), due.Next)
	}
	// The caller may have got the message before the delay was set.
	if free := r.conclude(delivered(due[1])...); len(free) > 0 {
		t.Errorf("%q are free, want none", free)
	}
	rest := r.due(100).Messages
	expectDeferred(t, rest, msgs[2:]...)
	expectStatus(t, rest, feeds.StatusRetry, feeds.StatusWaiting) // promoted
	if rest[0].Attempts != 0 || !near(rest[0].AvailableAt, time.Now()) {
		t.Errorf("the next one begins with %d attempts at %v, want 0 and now", rest[0].Attempts, rest[0].AvailableAt)
	}
	if free := r.conclude(delivered(rest...)...); !slices.Equal(free, []string{key}) {
		t.Errorf("%q are free, want %q", free, key)
	}
	if due := r.due(100); len(due.Messages) > 0 || due.Next >= 0 {
		t.Errorf("got %+v, want nothing at all", due)
	}
	if r.balance().Deferred || len(r.blocked()) > 0 {
		t.Error("something is left")
	}
	if free := r.conclude(delivered(rest...)...); len(free) > 0 { // again, as after a lost answer
		t.Errorf("%q are free, though nothing was removed", free)
	}
}

// testWaitingForNothing defers messages as waiting behind one that is gone.
func testWaitingForNothing(t *testing.T, h Harness) {
	r := joinAlone(t, h, "feed", longLease)
	waiting := feeds.Deferral{Status: feeds.StatusWaiting}
	msgs := block(r, h, "k", 3, waiting)
	due := r.due(10).Messages
	expectDeferred(t, due, msgs...)
	expectStatus(t, due, feeds.StatusRetry, feeds.StatusWaiting, feeds.StatusWaiting)

	more := block(r, h, "k", 2, waiting)
	due = r.due(10).Messages
	expectDeferred(t, due, append(msgs, more...)...)
	r.conclude(delivered(due...)...)

	// A later message that blocks the key does not matter.
	msgs = series("k", 2)
	write(t, h, msgs...)
	batches := r.next(2, 10)
	r.deferSome(batches, func(n int) feeds.Deferral {
		return []feeds.Deferral{{}, {Status: feeds.StatusDead, Blocking: true}}[n]
	})
	r.deferSome(batches, asKey(waiting))
	expectDeferred(t, r.due(10).Messages, msgs[0])
}

// testWaitingComesFirst lists a waiting message before the failed one that it waits for, in one
// call.
func testWaitingComesFirst(t *testing.T, h Harness) {
	msgs := series("k", 2)
	write(t, h, msgs...)
	r := joinAlone(t, h, "feed", longLease)
	var all []feeds.Deferral
	for _, b := range r.next(2, 10) {
		for i, m := range b.Messages {
			d := feeds.Deferral{Batch: &b, Index: i, Status: feeds.StatusWaiting, Blocking: true}
			if m.ID == msgs[0].ID {
				d.Status = feeds.StatusDead
			}
			all = append(all, d)
		}
	}
	slices.Reverse(all)
	if err := r.feed.Defer(t.Context(), all); err != nil {
		t.Fatalf("Defer: %v", err)
	}
	expectDeferred(t, r.due(10).Messages)
}

// testDeferTwice defers messages again, like a member that has read them again after a crash.
func testDeferTwice(t *testing.T, h Harness) {
	msgs := series("k", 3)
	write(t, h, msgs...)
	first := joinAlone(t, h, "feed", longLease)
	batches := first.next(3, 10)
	retry := feeds.Deferral{Status: feeds.StatusRetry, Attempts: 5, Cause: "first"}
	first.deferSome(batches, asKey(retry))
	first.deferSome(batches, asKey(feeds.Deferral{Status: feeds.StatusDead, Cause: "second"}))
	first.leave() // without settling anything

	r := joinAlone(t, h, "feed", longLease)
	if h.OneFeed {
		r.idle()
	} else {
		batches = r.next(3, 10)
		expect(t, batches, msgs)
		r.deferSome(batches, asKey(feeds.Deferral{Status: feeds.StatusWaiting}))
	}
	due := r.due(10).Messages
	expectDeferred(t, due, msgs...)
	if due[0].Status != feeds.StatusRetry || due[0].Attempts != 5 || due[0].LastError != "first" {
		t.Errorf("got %+v, want what was deferred first", due[0])
	}
}

// testDeferAgainAfterWork: Defer is called again because its answer was lost. In the meantime the
// first message of the key has failed, so that others overtake it, and these were delivered. The
// store may have them again, but they must not wait for a message that blocks nothing.
func testDeferAgainAfterWork(t *testing.T, h Harness) {
	msgs := series("k", 3)
	write(t, h, msgs...)
	r := joinAlone(t, h, "feed", longLease)
	batches := r.next(3, 10)
	waiting := asKey(feeds.Deferral{Status: feeds.StatusWaiting})
	r.deferSome(batches, waiting)
	due := r.due(10).Messages
	expectDeferred(t, due, msgs...)
	odd := failed(due[0], time.Hour)
	odd.Overtaken = true
	if free := r.conclude(append(delivered(due[1:]...), odd)...); len(free) != 1 {
		t.Errorf("%q are free, want the key", free)
	}
	r.deferSome(batches, waiting)
	again := r.due(10).Messages
	expectDeferred(t, again, msgs[1:]...)
	if free := r.conclude(delivered(again...)...); len(free) != 1 {
		t.Errorf("%q are free, want the key", free)
	}
}

// testDeferIsFenced calls Defer of a member whose shards others have taken.
func testDeferIsFenced(t *testing.T, h Harness) {
	old := joinAlone(t, h, "feed", shortLease)
	blocked := block(old, h, "blocked", 1, feeds.Deferral{Status: feeds.StatusRetry})
	msgs := series("k", 2)
	write(t, h, msgs...)
	batches := old.next(2, 10)
	due := old.due(10).Messages

	r := joinAlone(t, h, "feed", longLease) // waits until the lease has expired
	late := feeds.Deferral{Batch: &batches[0], Status: feeds.StatusDead, Blocking: true}
	if err := old.feed.Defer(t.Context(), []feeds.Deferral{late}); err == nil {
		t.Error("Defer: no error, though the shard is another's")
	}
	if _, err := old.feed.Conclude(t.Context(), delivered(due...)); err == nil {
		t.Error("Conclude: no error, though the shard is another's")
	}
	if _, err := old.feed.Suspect(t.Context(), feeds.Start{Batch: &batches[0]}); err == nil {
		t.Error("Suspect: no error, though the shard is another's")
	}
	if _, err := old.feed.Suspect(t.Context(), startOf(due[0])); err == nil {
		t.Error("Suspect of what is deferred: no error, though the shard is another's")
	}
	expect(t, r.next(2, 10), msgs)
	expectDeferred(t, r.due(10).Messages, blocked...)
	if got := r.blocked(); !slices.Equal(got, []string{blocked[0].OrderKey()}) {
		t.Errorf("blocked are %q, want only the first", got)
	}
}

// testDeferAllOrNone defers messages of two shards, of which the member owns one.
func testDeferAllOrNone(t *testing.T, h Harness) {
	if h.Shards < 2 {
		t.Skip("n/a: needs two shards")
	}
	var msgs []postrider.Message
	for i := range 20 * h.Shards {
		msgs = append(msgs, one(fmt.Sprint("k", i)))
	}
	write(t, h, msgs...)
	r := joinAlone(t, h, "feed", longLease)
	batches := r.next(len(msgs), 1000)
	mine := &batches[0]
	other := &batches[slices.IndexFunc(batches, func(b feeds.Batch) bool { return b.Shard != mine.Shard })]
	r.release(feeds.Mark{Shard: other.Shard})
	err := r.feed.Defer(t.Context(), []feeds.Deferral{
		{Batch: mine, Status: feeds.StatusRetry, Blocking: true}, {Batch: other, Status: feeds.StatusRetry, Blocking: true},
	})
	if err == nil {
		t.Fatal("Defer: no error, though one shard is not held")
	}
	expectDeferred(t, r.due(10).Messages)
}

func testDeadIsNeverDue(t *testing.T, h Harness) {
	r := joinAlone(t, h, "feed", longLease)
	dead := block(r, h, "dead", 2, feeds.Deferral{Status: feeds.StatusDead, Cause: "refused"})
	if due := r.due(10); len(due.Messages) > 0 || due.Next >= 0 || r.balance().Deferred {
		t.Errorf("got %+v, want nothing due now or later", due)
	}
	failing := block(r, h, "failing", 2, feeds.Deferral{Status: feeds.StatusRetry, Attempts: 1})
	if !r.balance().Deferred {
		t.Error("Share.Deferred is not set")
	}
	due := r.due(10).Messages
	expectDeferred(t, due, failing...)
	last := failed(due[0], 0)
	last.Status = feeds.StatusDead
	if free := r.conclude(last); len(free) > 0 {
		t.Errorf("%q are free, want none", free)
	}
	if due := r.due(10); len(due.Messages) > 0 || due.Next >= 0 || r.balance().Deferred {
		t.Errorf("got %+v, want nothing due now or later", due)
	}
	if free := r.conclude(delivered(due[0])...); len(free) > 0 { // an operator has handled it
		t.Errorf("%q are free, want none", free)
	}
	expectDeferred(t, r.due(10).Messages)
	want := []string{dead[0].OrderKey(), failing[0].OrderKey()}
	if got := r.blocked(); !slices.Equal(got, want) {
		t.Errorf("blocked are %q, want %q", got, want)
	}
}

func testFeedsDeferApart(t *testing.T, h Harness) {
	if h.OneFeed {
		refusesAnother(t, h)
		return
	}
	one, two := joinAlone(t, h, "one", longLease), joinAlone(t, h, "two", longLease)
	msgs := block(one, h, "k", 2, feeds.Deferral{Status: feeds.StatusRetry})
	batches := two.next(2, 10)
	expect(t, batches, msgs)
	if two.balance().Deferred || len(two.blocked()) > 0 || len(two.due(10).Messages) > 0 {
		t.Error("a feed sees what another has deferred")
	}
	two.deferSome(batches, asKey(feeds.Deferral{Status: feeds.StatusDead}))
	expectDeferred(t, one.due(10).Messages, msgs...)
	one.conclude(delivered(one.due(10).Messages...)...)
	if len(one.blocked()) > 0 || len(two.blocked()) != 1 {
		t.Error("a feed ended what another had deferred")
	}
}
