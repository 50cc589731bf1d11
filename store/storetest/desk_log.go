package storetest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/desk"
)

// search reads pages of the log until there are no more.
func search(t *testing.T, h Harness, feed string, filter desk.Filter, limit int) []desk.Logged {
	t.Helper()
	var all []desk.Logged
	for before := int64(0); ; {
		page, err := h.Desk.Messages(t.Context(), feed, filter, before, limit)
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

func expectLogged(t *testing.T, got []desk.Logged, want ...postrider.Message) {
	t.Helper()
	same := func(a desk.Logged, b postrider.Message) bool { return a.ID == b.ID }
	if !slices.EqualFunc(got, want, same) {
		t.Errorf("got %d messages, want %d, or they are not the same: %+v", len(got), len(want), got)
	}
}

// testDeskMessages searches the log for messages that differ in everything.
func testDeskMessages(t *testing.T, h Harness) {
	r := joinAlone(t, h, "feed", longLease)
	visit(t, h, "other")
	msgs := []postrider.Message{one("a"), one("b"), one("c"), one("d"), one("b")}
	msgs[0].Type, msgs[1].Topic, msgs[3].TenantID = "other", "topic", "tenant"
	for i, m := range msgs { // each in a transaction of its own, so that the order is known
		write(t, h, m)
		if i == 1 {
			r.settle(r.next(2, 10)...)
		}
		if i == 2 {
			batches := r.next(1, 10)
			r.setAside(batches, asKey(postrider.Deferral{Status: postrider.StatusDead, Attempts: 3, Cause: "refused"}))
			r.settle(batches...)
		}
	}
	all := search(t, h, "feed", desk.Filter{}, 100)
	slices.Reverse(all)
	expectLogged(t, all, msgs...)
	statuses := []postrider.Status{
		postrider.StatusPublished, postrider.StatusPublished, postrider.StatusDead, postrider.StatusPending, postrider.StatusPending,
	}
	for i, m := range all {
		if m.Feed != "feed" || m.Status != statuses[i] || !near(m.EnqueuedAt, time.Now()) || i > 0 && m.Seq <= all[i-1].Seq {
			t.Errorf("message %d is %+v", i, m)
		}
	}
	if m := all[2]; m.Attempts != 3 || m.LastError != "refused" {
		t.Errorf("the dead one is %+v", m)
	}
	for _, m := range search(t, h, "other", desk.Filter{}, 100) {
		if m.Status != postrider.StatusPending {
			t.Errorf("of the other feed: %+v", m)
		}
	}
	at := func(i int) time.Time { return all[i].EnqueuedAt }
	for name, c := range map[string]struct {
		filter desk.Filter
		want   []int
	}{
		"pending":     {desk.Filter{Statuses: []postrider.Status{postrider.StatusPending}}, []int{4, 3}},
		"dead":        {desk.Filter{Statuses: []postrider.Status{postrider.StatusDead, postrider.StatusParked}}, []int{2}},
		"both":        {desk.Filter{Statuses: []postrider.Status{postrider.StatusDead, postrider.StatusPublished}}, []int{2, 1, 0}},
		"ID":          {desk.Filter{ID: msgs[1].ID}, []int{1}},
		"another ID":  {desk.Filter{ID: postrider.NewID()}, nil},
		"an ID alone": {desk.Filter{ID: postrider.ID{1, 2, 3}}, nil},
		"type":        {desk.Filter{Type: "other"}, []int{0}},
		"topic":       {desk.Filter{Topic: "topic"}, []int{1}},
		"key":         {desk.Filter{Key: msgs[1].OrderKey()}, []int{4, 1}},
		"tenant":      {desk.Filter{Tenant: "tenant"}, []int{3}},
		"since":       {desk.Filter{Since: at(3)}, []int{4, 3}},
		"until":       {desk.Filter{Until: at(3)}, []int{2, 1, 0}},
		"between":     {desk.Filter{Since: at(1), Until: at(2)}, []int{1}},
		"too late":    {desk.Filter{Since: time.Now().Add(time.Hour)}, nil},
		"long ago":    {desk.Filter{Until: time.Now().Add(-time.Hour)}, nil},
		"all at once": {desk.Filter{Key: msgs[1].OrderKey(), Topic: "topic", Since: at(0)}, []int{1}},
	} {
		var want []postrider.Message
		for _, i := range c.want {
			want = append(want, msgs[i])
		}
		t.Run(name, func(t *testing.T) { expectLogged(t, search(t, h, "feed", c.filter, 100), want...) })
	}
	whole := search(t, h, "feed", desk.Filter{ID: msgs[1].ID}, 1) // with its payload, as it is asked for alone
	if diff := difference(whole[0].Message, msgs[1]); diff != "" {
		t.Error(diff)
	}
	if none := search(t, h, "no such feed", desk.Filter{}, 10); len(none) > 0 {
		t.Errorf("of no feed: %+v", none)
	}
}

func testDeskMessagesInPages(t *testing.T, h Harness) {
	joinAlone(t, h, "feed", longLease).leave()
	var want []postrider.Message
	for i := range 10 {
		msgs := series(string(rune('a'+i)), 5)
		write(t, h, msgs...)
		want = append(want, msgs...)
	}
	for _, limit := range []int{1, 7, 50, 51} {
		got := search(t, h, "feed", desk.Filter{}, limit)
		if !slices.IsSortedFunc(got, func(a, b desk.Logged) int { return int(b.Seq - a.Seq) }) {
			t.Errorf("in pages of %d they are not newest first", limit)
		}
		slices.Reverse(got)
		expectLogged(t, got, want...)
	}
}

// testDeskJourney follows messages through two feeds.
func testDeskJourney(t *testing.T, h Harness) {
	if _, err := h.Desk.Journey(t.Context(), postrider.NewID()); !errors.Is(err, desk.ErrNoMessage) {
		t.Errorf("of nothing: %v, want ErrNoMessage", err)
	}
	r := joinAlone(t, h, "one", longLease)
	visit(t, h, "two")
	feeds := h.feeds("one", "two")
	fine := one("fine")
	write(t, h, fine)
	r.settle(r.next(1, 10)...)
	r.idle()
	bad := block(r, h, "bad", 2, postrider.Deferral{Status: postrider.StatusDead, Attempts: 3, Cause: "refused"})

	j := journey(t, h, fine.ID)
	if diff := difference(j.Message, fine); diff != "" {
		t.Error(diff)
	}
	if !j.InLog || j.Seq == 0 || !near(j.EnqueuedAt, time.Now()) || len(j.Receipts)+len(j.Records) > 0 || len(j.Feeds) != len(feeds) ||
		j.Feeds[0].Feed != "one" || j.Feeds[0].Status != postrider.StatusPublished {
		t.Errorf("got %+v", j)
	}
	for _, l := range j.Feeds[1:] {
		if l.Feed != "two" || l.Status != postrider.StatusPending || !l.Settled.IsZero() {
			t.Errorf("got %+v", l)
		}
	}
	act(t, h, desk.Park, desk.Filter{ID: bad[0].ID}, 1)
	j = journey(t, h, bad[0].ID)
	if l := j.Feeds[0]; l.Status != postrider.StatusParked || l.Attempts != 3 || l.LastError != "refused" || !near(l.DeferredAt, time.Now()) {
		t.Errorf("got %+v", l)
	}
	if len(j.Records) != 1 || j.Records[0].Action != "park" || j.Records[0].Who != operator.Who {
		t.Errorf("the records are %+v", j.Records)
	}
	if l := journey(t, h, bad[1].ID).Feeds[0]; l.Status != postrider.StatusRetry || !l.Blocking {
		t.Errorf("what waited behind it is %+v", l)
	}
	act(t, h, desk.Discard, desk.Filter{ID: bad[0].ID}, 1)
	if j = journey(t, h, bad[0].ID); j.Feeds[0].Status != postrider.StatusPublished || len(j.Records) != 2 {
		t.Errorf("when it was discarded: %+v", j)
	}
}

func journey(t *testing.T, h Harness, id postrider.ID) *desk.Journey {
	t.Helper()
	j, err := h.Desk.Journey(t.Context(), id)
	if err != nil {
		t.Fatalf("Journey: %v", err)
	}
	return j
}
