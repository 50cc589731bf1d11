package storetest

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
)

func testAdminRetry(t *testing.T, h Harness) {
	r, msgs := dead(t, h, 2)
	act(t, h, admin.Retry, admin.Filter{ID: msgs[1].ID}, 0) // a waiting message cannot be retried
	act(t, h, admin.Retry, admin.Filter{ID: msgs[0].ID}, 1)
	due := r.due(10).Messages
	expectDeferred(t, due, msgs...)
	if d := due[0]; d.Status != feeds.StatusRetry || d.Attempts != 0 || !d.Blocking || d.LastError != "refused" {
		t.Errorf("got %+v, want a new beginning", d)
	}
	r.conclude(failed(due[0], time.Hour))
	expectDeferred(t, r.due(10).Messages)
	act(t, h, admin.Retry, admin.Filter{Feed: "feed"}, 1) // ends the backoff early
	due = r.due(10).Messages
	expectDeferred(t, due, msgs...)
	if free := r.conclude(delivered(due...)...); !slices.Equal(free, []string{msgs[0].OrderKey()}) {
		t.Errorf("%q are free, want the key", free)
	}
}

// expectContinues checks the state of the first message of a key, and that the later ones continue.
func expectContinues(t *testing.T, h Harness, r *reader, msgs []postrider.Message, status feeds.Status) {
	t.Helper()
	due := r.due(10).Messages
	expectDeferred(t, due, msgs[1:]...)
	if due[0].Status != feeds.StatusRetry || due[0].Attempts != 0 || !due[0].Blocking {
		t.Errorf("got %+v, want it to be the first of its key", due[0])
	}
	if free := r.conclude(delivered(due...)...); !slices.Equal(free, []string{msgs[0].OrderKey()}) {
		t.Errorf("%q are free, want the key", free)
	}
	left := list(t, h, admin.Filter{})
	if status == "" {
		expectDeferred(t, left)
		return
	}
	expectDeferred(t, left, msgs[0])
	if d := left[0]; d.Status != status || d.Blocking || !d.AvailableAt.IsZero() || d.LastError != "refused" {
		t.Errorf("got %+v, want it %s and in nobody's way", d, status)
	}
	if got := r.blocked(); len(got) > 0 {
		t.Errorf("blocked are %q, want none", got)
	}
	act(t, h, admin.Retry, admin.Filter{ID: msgs[0].ID}, 1)
	due = r.due(10).Messages
	expectDeferred(t, due, msgs[0])
	if free := r.conclude(delivered(due...)...); len(free) > 0 {
		t.Errorf("%q are free, though nothing was blocked", free)
	}
}

func testAdminSkip(t *testing.T, h Harness) {
	r, msgs := dead(t, h, 3)
	act(t, h, admin.Skip, admin.Filter{Head: true}, 1)
	expectContinues(t, h, r, msgs, feeds.StatusDead)
}

func testAdminPark(t *testing.T, h Harness) {
	r := joinAlone(t, h, "feed", longLease)
	msgs := block(r, h, "k", 3, feeds.Deferral{Status: feeds.StatusRetry, Delay: time.Hour, Cause: "refused"})
	act(t, h, admin.Park, admin.Filter{Key: msgs[0].OrderKey()}, 1)
	expectContinues(t, h, r, msgs, feeds.StatusParked)
}

func testAdminDiscard(t *testing.T, h Harness) {
	r, msgs := dead(t, h, 3)
	act(t, h, admin.Discard, admin.Filter{ID: msgs[2].ID}, 0) // a waiting message cannot be discarded
	act(t, h, admin.Discard, admin.Filter{ID: msgs[0].ID}, 1)
	expectContinues(t, h, r, msgs, "")
}

// testAdminActOnMany acts on some of many messages: the oldest first, and only those in a suitable
// state.
func testAdminActOnMany(t *testing.T, h Harness) {
	r := joinAlone(t, h, "feed", longLease)
	var first, second []postrider.Message
	for k := range 5 {
		msgs := block(r, h, fmt.Sprint("k", k), 2, feeds.Deferral{Status: feeds.StatusDead})
		first, second = append(first, msgs[0]), append(second, msgs[1])
	}
	n, err := h.Admin.Act(t.Context(), operator, admin.Park, admin.Filter{Feed: "feed"}, 2)
	if err != nil || n != 2 {
		t.Fatalf("parked %d, and %v; want 2", n, err)
	}
	e := newest(t, h)[0]
	if e.Count != 2 || fmt.Sprint(e.Before) != "map[dead:2]" {
		t.Errorf("the record is %+v", e)
	}
	expectDeferred(t, list(t, h, admin.Filter{Statuses: []feeds.Status{feeds.StatusParked}}), first[:2]...)
	due := r.due(10).Messages
	expectDeferred(t, due, second[:2]...)
	// A message that does not block, or is not the first of its key, unblocks nothing.
	act(t, h, admin.Discard, admin.Filter{Statuses: []feeds.Status{feeds.StatusParked}}, 2)
	expectDeferred(t, r.due(10).Messages, second[:2]...)
	act(t, h, admin.Discard, admin.Filter{}, 3)
	r.conclude(delivered(r.due(10).Messages...)...)
	expectDeferred(t, list(t, h, admin.Filter{}))
	act(t, h, admin.Discard, admin.Filter{}, 0)
	if _, err := h.Admin.Act(t.Context(), operator, "burn", admin.Filter{}, 0); err == nil {
		t.Error("an act that does not exist was done")
	}
}

// testAdminDecisionStands parks a message while it is being sent: the act prevails.
func testAdminDecisionStands(t *testing.T, h Harness) {
	for name, end := range map[string]func(feeds.Deferred) feeds.Conclusion{
		"delivered": func(d feeds.Deferred) feeds.Conclusion { return delivered(d)[0] },
		"failed":    func(d feeds.Deferred) feeds.Conclusion { return failed(d, 0) },
	} {
		feed := name
		if h.OneFeed {
			feed = "feed"
		}
		r := joinAlone(t, h, feed, longLease)
		r.settle(r.read(100)...)
		msgs := block(r, h, name, 2, feeds.Deferral{Status: feeds.StatusRetry})
		due := r.due(10).Messages
		chosen := admin.Filter{Feed: feed, Key: msgs[0].OrderKey()}
		act(t, h, admin.Park, chosen, 1)
		if free := r.conclude(end(due[0])); len(free) > 0 {
			t.Errorf("%s: %q are free, want none", name, free)
		}
		got := list(t, h, chosen)
		expectDeferred(t, got, msgs...)
		expectStatus(t, got, feeds.StatusParked, feeds.StatusRetry)
		r.conclude(delivered(r.due(10).Messages...)...)
		r.leave()
	}
}

// newest returns all audit entries, newest first.
func newest(t *testing.T, h Harness) []admin.Entry {
	t.Helper()
	entries, err := h.Admin.Audit(t.Context(), "feed", 0, 1000)
	if err != nil {
		t.Fatalf("Audit: %v", err)
	}
	return entries
}

func testAdminRecords(t *testing.T, h Harness) {
	m := one("k")
	m.Topic, m.Payload = "topic", []byte("not \xff text")
	write(t, h, m)
	r := joinAlone(t, h, "feed", longLease)
	r.deferSome(r.next(1, 10), asKey(feeds.Deferral{Status: feeds.StatusDead, Attempts: 3, Cause: "refused"}))
	act(t, h, admin.Retry, admin.Filter{ID: postrider.NewID()}, 0) // nothing happens, and nothing is recorded
	act(t, h, admin.Retry, admin.Filter{ID: m.ID}, 1)
	act(t, h, admin.Park, admin.Filter{ID: m.ID}, 1)
	act(t, h, admin.Discard, admin.Filter{Feed: "feed"}, 1)
	newer := h.feeds("feed", "another")[1:]
	if err := h.Admin.AddFeed(t.Context(), operator, "another", false); h.OneFeed != errors.Is(err, admin.ErrRefused) || !h.OneFeed && err != nil {
		t.Fatalf("AddFeed: %v", err)
	}
	if err := h.Admin.PauseFeed(t.Context(), operator, "none", true); !errors.Is(err, admin.ErrNoFeed) {
		t.Errorf("PauseFeed: %v, want ErrNoFeed", err)
	}

	entries := newest(t, h)
	if len(entries) != 4 || entries[3].Action != "feed add" {
		t.Fatalf("got %d records of the feed, want 3, and that it was created", len(entries))
	}
	entries = entries[:3]
	wanted := []struct{ action, before, after string }{{"discard", "parked", ""}, {"park", "retry", "parked"}, {"retry", "dead", "retry"}}
	for i, e := range entries {
		if e.Action != wanted[i].action || e.Who != operator.Who || e.Why != operator.Why || e.Count != 1 || !near(e.At, time.Now()) ||
			len(e.Target) == 0 {
			t.Errorf("record %d is %+v", i, e)
		}
		for key, want := range map[string]any{
			"type": m.Type, "topic": m.Topic, "status": wanted[i].before, "last_error": "refused",
			"payload": base64.StdEncoding.EncodeToString(m.Payload),
		} {
			if e.Before[key] != want {
				t.Errorf("record %d: %s was %v, want %v", i, key, e.Before[key], want)
			}
		}
		if after, _ := e.After["status"].(string); after != wanted[i].after {
			t.Errorf("record %d: the status is %q afterwards, want %q", i, after, wanted[i].after)
		}
	}
	if got := fmt.Sprint(entries[2].Before["attempts"]); got != "3" {
		t.Errorf("there were %s attempts, want 3", got)
	}

	var all []admin.Entry
	for before := int64(math.MaxInt64); ; before = all[len(all)-1].N {
		page, err := h.Admin.Audit(t.Context(), "", before, 3)
		if err != nil {
			t.Fatalf("Audit: %v", err)
		}
		if len(page) == 0 {
			break
		}
		all = append(all, page...)
	}
	if len(all) != 4+len(newer) || all[len(newer)].N != entries[0].N || len(newer) > 0 && all[0].Feed != newer[0] {
		t.Errorf("got %+v, want the four of the feed and newer ones of %v", all, newer)
	}

	if err := h.Admin.Reveal(t.Context(), operator, "feed", m.ID); err != nil {
		t.Errorf("Reveal: %v", err)
	}
	e := newest(t, h)[0]
	if e.Action != "reveal" || e.Who != operator.Who || e.Why != operator.Why || e.Count != 1 || e.Target["id"] != m.ID.String() {
		t.Errorf("what was revealed is recorded as %+v", e)
	}
}
