package storetest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
)

// search reads all pages of the log.
func search(t *testing.T, h Harness, feed string, filter admin.Filter, limit int) []admin.Logged {
	t.Helper()
	var all []admin.Logged
	for before := int64(0); ; {
		page, err := h.Admin.Messages(t.Context(), feed, filter, before, limit)
		if err != nil {
			t.Fatalf("Messages: %v", err)
		}
		if len(page.Items) > limit {
			t.Fatalf("got a page of %d, want at most %d", len(page.Items), limit)
		}
		all = append(all, page.Items...)
		if page.Next == 0 {
			if !page.Until.IsZero() {
				t.Errorf("all was searched, and Until is %v", page.Until)
			}
			return all
		}
		if before > 0 && page.Next >= before {
			t.Fatalf("Next is %d, after %d", page.Next, before)
		}
		before = page.Next
	}
}

func expectLogged(t *testing.T, got []admin.Logged, want ...postrider.Message) {
	t.Helper()
	same := func(a admin.Logged, b postrider.Message) bool { return a.ID == b.ID }
	if !slices.EqualFunc(got, want, same) {
		t.Errorf("got %d messages, want %d, or they are not the same: %+v", len(got), len(want), got)
	}
}

// testAdminMessages searches the log for messages that differ in every field.
func testAdminMessages(t *testing.T, h Harness) {
	r := joinAlone(t, h, "feed", longLease)
	visit(t, h, "other")
	msgs := []postrider.Message{one("a"), one("b"), one("c"), one("d"), one("b")}
	msgs[0].Type, msgs[1].Topic, msgs[3].TenantID = "other", "topic", "tenant"
	for i, m := range msgs { // each in its own transaction, so that the order is known
		write(t, h, m)
		if i == 1 {
			r.settle(r.next(2, 10)...)
		}
		if i == 2 {
			batches := r.next(1, 10)
			r.deferSome(batches, asKey(feeds.Deferral{Status: feeds.StatusDead, Attempts: 3, Cause: "refused"}))
			r.settle(batches...)
		}
	}
	all := search(t, h, "feed", admin.Filter{}, 100)
	slices.Reverse(all)
	expectLogged(t, all, msgs...)
	statuses := []feeds.Status{
		feeds.StatusPublished, feeds.StatusPublished, feeds.StatusDead, feeds.StatusPending, feeds.StatusPending,
	}
	for i, m := range all {
		if m.Feed != "feed" || m.Status != statuses[i] || !near(m.EnqueuedAt, time.Now()) || i > 0 && m.Seq <= all[i-1].Seq {
			t.Errorf("message %d is %+v", i, m)
		}
	}
	if m := all[2]; m.Attempts != 3 || m.LastError != "refused" {
		t.Errorf("the dead one is %+v", m)
	}
	for _, m := range search(t, h, "other", admin.Filter{}, 100) {
		if m.Status != feeds.StatusPending {
			t.Errorf("of the other feed: %+v", m)
		}
	}
	at := func(i int) time.Time { return all[i].EnqueuedAt }
	for name, c := range map[string]struct {
		filter admin.Filter
		want   []int
	}{
		"pending":     {admin.Filter{Statuses: []feeds.Status{feeds.StatusPending}}, []int{4, 3}},
		"dead":        {admin.Filter{Statuses: []feeds.Status{feeds.StatusDead, feeds.StatusParked}}, []int{2}},
		"both":        {admin.Filter{Statuses: []feeds.Status{feeds.StatusDead, feeds.StatusPublished}}, []int{2, 1, 0}},
		"ID":          {admin.Filter{ID: msgs[1].ID}, []int{1}},
		"another ID":  {admin.Filter{ID: postrider.NewID()}, nil},
		"an ID alone": {admin.Filter{ID: postrider.ID{1, 2, 3}}, nil},
		"type":        {admin.Filter{Type: "other"}, []int{0}},
		"topic":       {admin.Filter{Topic: "topic"}, []int{1}},
		"key":         {admin.Filter{Key: msgs[1].OrderKey()}, []int{4, 1}},
		"tenant":      {admin.Filter{Tenant: "tenant"}, []int{3}},
		"since":       {admin.Filter{Since: at(3)}, []int{4, 3}},
		"until":       {admin.Filter{Until: at(3)}, []int{2, 1, 0}},
		"between":     {admin.Filter{Since: at(1), Until: at(2)}, []int{1}},
		"too late":    {admin.Filter{Since: time.Now().Add(time.Hour)}, nil},
		"long ago":    {admin.Filter{Until: time.Now().Add(-time.Hour)}, nil},
		"all at once": {admin.Filter{Key: msgs[1].OrderKey(), Topic: "topic", Since: at(0)}, []int{1}},
	} {
		var want []postrider.Message
		for _, i := range c.want {
			want = append(want, msgs[i])
		}
		t.Run(name, func(t *testing.T) { expectLogged(t, search(t, h, "feed", c.filter, 100), want...) })
	}
	whole := search(t, h, "feed", admin.Filter{ID: msgs[1].ID}, 1) // with its payload, because the ID was given
	if diff := difference(whole[0].Message, msgs[1]); diff != "" {
		t.Error(diff)
	}
	for _, m := range search(t, h, "feed", admin.Filter{}, 100) { // a list must not load payloads
		if m.Payload != nil || m.Size == 0 {
			t.Errorf("message %s of a list has a payload of %d bytes, and a size of %d", m.ID, len(m.Payload), m.Size)
		}
	}
	if none := search(t, h, "no such feed", admin.Filter{}, 10); len(none) > 0 {
		t.Errorf("of no feed: %+v", none)
	}
}

func testAdminMessagesInPages(t *testing.T, h Harness) {
	joinAlone(t, h, "feed", longLease).leave()
	var want []postrider.Message
	for i := range 10 {
		msgs := series(string(rune('a'+i)), 5)
		write(t, h, msgs...)
		want = append(want, msgs...)
	}
	for _, limit := range []int{1, 7, 50, 51} {
		got := search(t, h, "feed", admin.Filter{}, limit)
		if !slices.IsSortedFunc(got, func(a, b admin.Logged) int { return int(b.Seq - a.Seq) }) {
			t.Errorf("in pages of %d they are not newest first", limit)
		}
		slices.Reverse(got)
		expectLogged(t, got, want...)
	}
}

// testAdminJourney follows messages through two feeds.
func testAdminJourney(t *testing.T, h Harness) {
	if _, err := h.Admin.Journey(t.Context(), postrider.NewID()); !errors.Is(err, admin.ErrNoMessage) {
		t.Errorf("of nothing: %v, want ErrNoMessage", err)
	}
	r := joinAlone(t, h, "one", longLease)
	visit(t, h, "two")
	names := h.feeds("one", "two")
	fine := one("fine")
	write(t, h, fine)
	r.settle(r.next(1, 10)...)
	r.idle()
	bad := block(r, h, "bad", 2, feeds.Deferral{Status: feeds.StatusDead, Attempts: 3, Cause: "refused"})

	j := journey(t, h, fine.ID)
	if diff := difference(j.Message, fine); diff != "" {
		t.Error(diff)
	}
	if !j.InLog || j.Seq == 0 || !near(j.EnqueuedAt, time.Now()) || len(j.Receipts)+len(j.Records) > 0 || len(j.Feeds) != len(names) ||
		j.Feeds[0].Feed != "one" || j.Feeds[0].Status != feeds.StatusPublished {
		t.Errorf("got %+v", j)
	}
	for _, l := range j.Feeds[1:] {
		if l.Feed != "two" || l.Status != feeds.StatusPending || !l.Settled.IsZero() {
			t.Errorf("got %+v", l)
		}
	}
	act(t, h, admin.Park, admin.Filter{ID: bad[0].ID}, 1)
	j = journey(t, h, bad[0].ID)
	if l := j.Feeds[0]; l.Status != feeds.StatusParked || l.Attempts != 3 || l.LastError != "refused" || !near(l.DeferredAt, time.Now()) {
		t.Errorf("got %+v", l)
	}
	if len(j.Records) != 1 || j.Records[0].Action != "park" || j.Records[0].Who != operator.Who {
		t.Errorf("the records are %+v", j.Records)
	}
	if l := journey(t, h, bad[1].ID).Feeds[0]; l.Status != feeds.StatusRetry || !l.Blocking {
		t.Errorf("what waited behind it is %+v", l)
	}
	act(t, h, admin.Discard, admin.Filter{ID: bad[0].ID}, 1)
	if j = journey(t, h, bad[0].ID); j.Feeds[0].Status != feeds.StatusPublished || len(j.Records) != 2 {
		t.Errorf("when it was discarded: %+v", j)
	}
}

func journey(t *testing.T, h Harness, id postrider.ID) *admin.Journey {
	t.Helper()
	j, err := h.Admin.Journey(t.Context(), id)
	if err != nil {
		t.Fatalf("Journey: %v", err)
	}
	return j
}
