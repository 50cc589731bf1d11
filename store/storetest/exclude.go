package storetest

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/desk"
)

// exclude decides about a message of the log.
func exclude(t *testing.T, h Harness, what desk.Act, m postrider.Message, want error) {
	t.Helper()
	x, ok := h.Desk.(desk.Excluder)
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

// testExcludeDiscard discards messages that nobody has read, that somebody has read, and that somebody wants to set aside.
func testExcludeDiscard(t *testing.T, h Harness) {
	r := joinAlone(t, h, "feed", longLease)
	msgs := series("k", 3)
	write(t, h, msgs...)
	exclude(t, h, desk.Discard, msgs[0], nil)
	r.expectExcluded(msgs[0])
	batches := r.next(3, 10)
	exclude(t, h, desk.Discard, msgs[1], nil)
	exclude(t, h, desk.Discard, msgs[1], nil) // as after a lost answer
	r.expectExcluded(msgs[0], msgs[1])
	expectAside(t, list(t, h, desk.Filter{}))

	// A relay that has not heard of it yet may set it aside, with what is behind it.
	r.setAside(batches, asKey(postrider.Deferral{Status: postrider.StatusDead, Attempts: 3, Cause: "refused"}))
	due := r.due(10).Messages
	expectAside(t, due, msgs[2])
	expectAside(t, list(t, h, desk.Filter{}), msgs[2])
	exclude(t, h, desk.Discard, msgs[2], desk.ErrSetAside)
	if free := r.conclude(delivered(due...)...); !slices.Equal(free, []string{msgs[0].OrderKey()}) {
		t.Errorf("%q are free, want the key", free)
	}
	j, err := h.Desk.Journey(t.Context(), msgs[1].ID)
	if err != nil {
		t.Fatal(err)
	}
	if len(j.Feeds) != 1 || !j.Feeds[0].Excluded || j.Feeds[0].Status != postrider.StatusPending || len(j.Records) != 1 {
		t.Errorf("the journey is %+v, want it excluded, and one record", j)
	}

	// It stays excluded until the feed has passed it, whoever serves the feed.
	r.leave()
	r = joinAlone(t, h, "feed", longLease)
	r.expectExcluded(msgs[0], msgs[1])
	r.settle(r.next(3, 10)...)
	exclude(t, h, desk.Discard, msgs[0], desk.ErrPassed)
	r.maintain(h)
	r.expectExcluded()
	exclude(t, h, desk.Discard, one("k"), desk.ErrNoMessage)

	records := slices.DeleteFunc(newest(t, h, "feed"), func(e desk.Entry) bool { return e.Action != string(desk.Discard) })
	if len(records) != 2 {
		t.Fatalf("got %d records, want 2: %+v", len(records), records)
	}
	if e := records[1]; e.Count != 1 || e.Who != operator.Who || e.Why != operator.Why || e.Before["id"] != msgs[0].ID.String() ||
		e.Before["payload"] != string(msgs[0].Payload) || e.Before["status"] != string(postrider.StatusPending) || e.After != nil {
		t.Errorf("the record is %+v", e)
	}
}

// testExcludePark parks a message of the log, and has it sent or removed later: never from the log.
func testExcludePark(t *testing.T, h Harness) {
	r := joinAlone(t, h, "feed", longLease)
	msgs := series("k", 3)
	msgs[0].Headers = map[string]string{"h": "v"}
	write(t, h, msgs...)
	exclude(t, h, desk.Park, msgs[0], nil)
	exclude(t, h, desk.Park, msgs[1], nil)
	exclude(t, h, desk.Park, msgs[1], desk.ErrSetAside)
	r.expectExcluded(msgs[0], msgs[1])
	parked := list(t, h, desk.Filter{Statuses: []postrider.Status{postrider.StatusParked}})
	expectAside(t, parked, msgs[0], msgs[1])
	if d := parked[0]; d.Blocking || !d.AvailableAt.IsZero() || d.OrderKey() != msgs[0].OrderKey() {
		t.Errorf("got %+v, want it parked and in nobody's way", d)
	}
	if len(r.blocked()) > 0 {
		t.Error("the key is blocked")
	}
	batches := r.next(3, 10)
	r.setAside(batches, func(int) postrider.Deferral { return postrider.Deferral{Status: postrider.StatusDead} }) // changes nothing
	expectStatus(t, list(t, h, desk.Filter{}), postrider.StatusParked, postrider.StatusParked, postrider.StatusDead)

	act(t, h, desk.Retry, desk.Filter{ID: msgs[0].ID}, 1)
	due := r.due(10).Messages
	expectAside(t, due, msgs[0])
	if diff := difference(due[0].Message, msgs[0]); diff != "" {
		t.Error(diff)
	}
	r.conclude(delivered(due...)...)
	act(t, h, desk.Discard, desk.Filter{ID: msgs[1].ID}, 1)
	r.expectExcluded(msgs[0], msgs[1])
	r.settle(batches...)
	r.maintain(h)
	r.expectExcluded()
}

// testExcludeUnpassed: what was set aside and decided about is not sent from the log either, if the feed has not passed it yet.
func testExcludeUnpassed(t *testing.T, h Harness) {
	if _, ok := h.Desk.(desk.Excluder); !ok {
		t.Skip("n/a: the store does not exclude messages")
	}
	r := joinAlone(t, h, "feed", longLease)
	msgs := series("k", 2)
	write(t, h, msgs...)
	batches := r.next(2, 10)
	r.setAside(batches, func(int) postrider.Deferral { return postrider.Deferral{Status: postrider.StatusDead, Attempts: 1} })
	act(t, h, desk.Park, desk.Filter{ID: msgs[0].ID}, 1)
	act(t, h, desk.Discard, desk.Filter{ID: msgs[1].ID}, 1)
	r.expectExcluded(msgs...)
	r.settle(batches...)
	act(t, h, desk.Discard, desk.Filter{ID: msgs[0].ID}, 1)
	r.maintain(h)
	r.expectExcluded()
}

// testDeferBare defers a message without its content, as the last resort.
func testDeferBare(t *testing.T, h Harness) {
	r := joinAlone(t, h, "feed", longLease)
	msgs := series("k", 2)
	msgs[0].Type = strings.Repeat("t", 2*postrider.BareType)
	msgs[0].Headers, msgs[0].Topic, msgs[0].TenantID = map[string]string{"h": "v"}, "topic", "tenant"
	write(t, h, msgs...)
	batches := r.next(2, 10)
	r.setAside(batches, func(n int) postrider.Deferral {
		if n == 0 {
			return postrider.Deferral{Status: postrider.StatusDead, Bare: true, Cause: "refused"}
		}
		return postrider.Deferral{Status: postrider.StatusWaiting, Blocking: true}
	})
	r.settle(batches...)
	due := r.due(10).Messages
	expectAside(t, due, msgs[1]) // it waits for nothing
	r.conclude(delivered(due...)...)
	found := list(t, h, desk.Filter{ID: msgs[0].ID, Statuses: []postrider.Status{postrider.StatusDead}})
	expectAside(t, found, msgs[0])
	d := found[0]
	if d.Blocking || d.LastError != "refused" || d.Shard != batches[0].Shard || !near(d.EnqueuedAt, time.Now()) {
		t.Errorf("got %+v", d)
	}
	if h.OneFeed { // its messages carry their state
		if diff := difference(d.Message, msgs[0]); diff != "" || d.Bare {
			t.Errorf("got %+v, want all of it: %s", d, diff)
		}
		return
	}
	bare := postrider.Message{ID: msgs[0].ID, Type: msgs[0].Type[:postrider.BareType], SchemaVersion: d.SchemaVersion, OccurredAt: d.OccurredAt}
	if diff := difference(d.Message, bare); diff != "" || !d.Bare {
		t.Errorf("got %+v, want nothing but its ID and type: %s", d, diff)
	}
	act(t, h, desk.Retry, desk.Filter{ID: d.ID}, 0)
	if err := h.Desk.Edit(t.Context(), operator, "feed", d.ID, msgs[1]); !errors.Is(err, desk.ErrBare) {
		t.Errorf("Edit: %v, want ErrBare", err)
	}
	r.maintain(h)
	j, err := h.Desk.Journey(t.Context(), d.ID)
	if err != nil || !j.InLog || difference(j.Message, msgs[0]) != "" || len(j.Feeds) != 1 || j.Feeds[0].Status != postrider.StatusDead {
		t.Errorf("the journey is %+v, %v; want the content, and a dead letter", j, err)
	}
	act(t, h, desk.Discard, desk.Filter{ID: d.ID}, 1)
	expectAside(t, list(t, h, desk.Filter{}))
}

// maintain does the store's housekeeping, if it has any.
func (r *reader) maintain(h Harness) {
	r.t.Helper()
	if m, ok := h.Store.(postrider.Maintainer); ok {
		if err := m.Maintain(r.t.Context()); err != nil {
			r.t.Fatalf("Maintain: %v", err)
		}
	}
}
