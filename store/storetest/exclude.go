package storetest

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
)

// exclude applies an act to a message of the log.
func exclude(t *testing.T, h Harness, what admin.Act, m postrider.Message, want error) {
	t.Helper()
	x, ok := h.Admin.(admin.Excluder)
	if !ok {
		t.Skip("n/a: the store does not exclude messages")
	}
	if err := x.Exclude(t.Context(), operator, what, "feed", m.ID); !errors.Is(err, want) {
		t.Fatalf("%s message %s: %v, want %v", what, m.ID, err, want)
	}
}

func (r *reader) expectExcluded(want ...postrider.Message) {
	r.t.Helper()
	var ids []postrider.ID
	for _, m := range want {
		ids = append(ids, m.ID)
	}
	if got := r.balance().Excluded; !slices.Equal(got, ids) {
		r.t.Errorf("excluded are %v, want %v", got, ids)
	}
}

// testExcludeDiscard discards messages that were not read, that a member has read, and that a
// member is about to defer.
func testExcludeDiscard(t *testing.T, h Harness) {
	r := joinAlone(t, h, "feed", longLease)
	msgs := series("k", 3)
	write(t, h, msgs...)
	exclude(t, h, admin.Discard, msgs[0], nil)
	r.expectExcluded(msgs[0])
	batches := r.next(3, 10)
	exclude(t, h, admin.Discard, msgs[1], nil)
	exclude(t, h, admin.Discard, msgs[1], nil) // as after a lost answer
	r.expectExcluded(msgs[0], msgs[1])
	expectDeferred(t, list(t, h, admin.Filter{}))

	// A relay that has not received the exclusion yet may defer the message and those behind it.
	r.deferSome(batches, asKey(feeds.Deferral{Status: feeds.StatusDead, Attempts: 3, Cause: "refused"}))
	due := r.due(10).Messages
	expectDeferred(t, due, msgs[2])
	expectDeferred(t, list(t, h, admin.Filter{}), msgs[2])
	exclude(t, h, admin.Discard, msgs[2], admin.ErrDeferred)
	if free := r.conclude(delivered(due...)...); !slices.Equal(free, []string{msgs[0].OrderKey()}) {
		t.Errorf("%q are free, want the key", free)
	}
	j, err := h.Admin.Journey(t.Context(), msgs[1].ID)
	if err != nil {
		t.Fatal(err)
	}
	if len(j.Feeds) != 1 || !j.Feeds[0].Excluded || j.Feeds[0].Status != feeds.StatusPending || len(j.Records) != 1 {
		t.Errorf("the journey is %+v, want it excluded, and one record", j)
	}

	// It stays excluded for any member until the feed has passed it.
	r.leave()
	r = joinAlone(t, h, "feed", longLease)
	r.expectExcluded(msgs[0], msgs[1])
	r.settle(r.next(3, 10)...)
	exclude(t, h, admin.Discard, msgs[0], admin.ErrPassed)
	r.maintain(h)
	r.expectExcluded()
	exclude(t, h, admin.Discard, one("k"), admin.ErrNoMessage)

	records := slices.DeleteFunc(newest(t, h), func(e admin.Entry) bool { return e.Action != string(admin.Discard) })
	if len(records) != 2 {
		t.Fatalf("got %d records, want 2: %+v", len(records), records)
	}
	if e := records[1]; e.Count != 1 || e.Who != operator.Who || e.Why != operator.Why || e.Before["id"] != msgs[0].ID.String() ||
		e.Before["payload"] != string(msgs[0].Payload) || e.Before["status"] != string(feeds.StatusPending) || e.After != nil {
		t.Errorf("the record is %+v", e)
	}
}

// testExcludePark parks a message of the log, and later retries or discards it: it is never sent
// from the log.
func testExcludePark(t *testing.T, h Harness) {
	r := joinAlone(t, h, "feed", longLease)
	msgs := series("k", 3)
	msgs[0].Headers = map[string]string{"h": "v"}
	write(t, h, msgs...)
	exclude(t, h, admin.Park, msgs[0], nil)
	exclude(t, h, admin.Park, msgs[1], nil)
	exclude(t, h, admin.Park, msgs[1], admin.ErrDeferred)
	r.expectExcluded(msgs[0], msgs[1])
	parked := list(t, h, admin.Filter{Statuses: []feeds.Status{feeds.StatusParked}})
	expectDeferred(t, parked, msgs[0], msgs[1])
	if d := parked[0]; d.Blocking || !d.AvailableAt.IsZero() || d.OrderKey() != msgs[0].OrderKey() {
		t.Errorf("got %+v, want it parked and in nobody's way", d)
	}
	if len(r.blocked()) > 0 {
		t.Error("the key is blocked")
	}
	batches := r.next(3, 10)
	r.deferSome(batches, func(int) feeds.Deferral { return feeds.Deferral{Status: feeds.StatusDead} }) // no effect
	expectStatus(t, list(t, h, admin.Filter{}), feeds.StatusParked, feeds.StatusParked, feeds.StatusDead)

	act(t, h, admin.Retry, admin.Filter{ID: msgs[0].ID}, 1)
	due := r.due(10).Messages
	expectDeferred(t, due, msgs[0])
	if diff := difference(due[0].Message, msgs[0]); diff != "" {
		t.Error(diff)
	}
	r.conclude(delivered(due...)...)
	act(t, h, admin.Discard, admin.Filter{ID: msgs[1].ID}, 1)
	r.expectExcluded(msgs[0], msgs[1])
	r.settle(batches...)
	r.maintain(h)
	r.expectExcluded()
}

// testExcludeUnpassed: a deferred message that an operator has handled is not sent from the log
// either, if the feed has not passed it yet.
func testExcludeUnpassed(t *testing.T, h Harness) {
	if _, ok := h.Admin.(admin.Excluder); !ok {
		t.Skip("n/a: the store does not exclude messages")
	}
	r := joinAlone(t, h, "feed", longLease)
	msgs := series("k", 2)
	write(t, h, msgs...)
	batches := r.next(2, 10)
	r.deferSome(batches, func(int) feeds.Deferral { return feeds.Deferral{Status: feeds.StatusDead, Attempts: 1} })
	act(t, h, admin.Park, admin.Filter{ID: msgs[0].ID}, 1)
	act(t, h, admin.Discard, admin.Filter{ID: msgs[1].ID}, 1)
	r.expectExcluded(msgs...)
	r.settle(batches...)
	act(t, h, admin.Discard, admin.Filter{ID: msgs[0].ID}, 1)
	r.maintain(h)
	r.expectExcluded()
}

// testDeferBare defers a message without its content, the last resort of a relay.
func testDeferBare(t *testing.T, h Harness) {
	r := joinAlone(t, h, "feed", longLease)
	msgs := series("k", 2)
	msgs[0].Type = strings.Repeat("t", 2*feeds.BareType)
	msgs[0].Headers, msgs[0].Topic, msgs[0].TenantID = map[string]string{"h": "v"}, "topic", "tenant"
	write(t, h, msgs...)
	batches := r.next(2, 10)
	r.deferSome(batches, func(n int) feeds.Deferral {
		if n == 0 {
			return feeds.Deferral{Status: feeds.StatusDead, Bare: true, Cause: "refused"}
		}
		return feeds.Deferral{Status: feeds.StatusWaiting, Blocking: true}
	})
	r.settle(batches...)
	due := r.due(10).Messages
	expectDeferred(t, due, msgs[1]) // it waits for no other
	r.conclude(delivered(due...)...)
	found := list(t, h, admin.Filter{ID: msgs[0].ID, Statuses: []feeds.Status{feeds.StatusDead}})
	expectDeferred(t, found, msgs[0])
	d := found[0]
	if d.Blocking || d.LastError != "refused" || d.Shard != batches[0].Shard || !near(d.EnqueuedAt, time.Now()) {
		t.Errorf("got %+v", d)
	}
	if h.OneFeed { // the state of a message is in its row
		if diff := difference(d.Message, msgs[0]); diff != "" || d.Bare {
			t.Errorf("got %+v, want all of it: %s", d, diff)
		}
		return
	}
	bare := postrider.Message{ID: msgs[0].ID, Type: msgs[0].Type[:feeds.BareType], SchemaVersion: d.SchemaVersion, OccurredAt: d.OccurredAt}
	if diff := difference(d.Message, bare); diff != "" || !d.Bare {
		t.Errorf("got %+v, want nothing but its ID and type: %s", d, diff)
	}
	act(t, h, admin.Retry, admin.Filter{ID: d.ID}, 0)
	if err := h.Admin.Edit(t.Context(), operator, "feed", d.ID, msgs[1]); !errors.Is(err, admin.ErrBare) {
		t.Errorf("Edit: %v, want ErrBare", err)
	}
	r.maintain(h)
	j, err := h.Admin.Journey(t.Context(), d.ID)
	if err != nil || !j.InLog || difference(j.Message, msgs[0]) != "" || len(j.Feeds) != 1 || j.Feeds[0].Status != feeds.StatusDead {
		t.Errorf("the journey is %+v, %v; want the content, and a dead letter", j, err)
	}
	act(t, h, admin.Discard, admin.Filter{ID: d.ID}, 1)
	expectDeferred(t, list(t, h, admin.Filter{}))
}

// maintain runs the store's housekeeping, if it has any.
func (r *reader) maintain(h Harness) {
	r.t.Helper()
	if m, ok := h.Store.(feeds.Maintainer); ok {
		if err := m.Maintain(r.t.Context()); err != nil {
			r.t.Fatalf("Maintain: %v", err)
		}
	}
}
