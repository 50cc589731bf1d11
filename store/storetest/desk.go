package storetest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/desk"
)

var deskTests = []test{
	{"DeskList", withDesk(testDeskList)},
	{"DeskFilter", withDesk(testDeskFilter)},
	{"DeskBlocked", withDesk(testDeskBlocked)},
	{"DeskRetry", withDesk(testDeskRetry)},
	{"DeskSkip", withDesk(testDeskSkip)},
	{"DeskPark", withDesk(testDeskPark)},
	{"DeskDiscard", withDesk(testDeskDiscard)},
	{"DeskActOnMany", withDesk(testDeskActOnMany)},
	{"DeskEdit", withDesk(testDeskEdit)},
	{"DeskDecisionStands", withDesk(testDeskDecisionStands)},
	{"DeskRecords", withDesk(testDeskRecords)},
	{"DeskLongest", withDesk(testDeskLongest)},
	{"ExcludeDiscard", withDesk(testExcludeDiscard)},
	{"ExcludePark", withDesk(testExcludePark)},
	{"ExcludeUnpassed", withDesk(testExcludeUnpassed)},
	{"DeferBare", withDesk(testDeferBare)},

	{"DeskMessages", withDesk(testDeskMessages)},
	{"DeskMessagesInPages", withDesk(testDeskMessagesInPages)},
	{"DeskJourney", withDesk(testDeskJourney)},
	{"DeskGauges", withDesk(testDeskGauges)},
	{"DeskGaugesOfLateCommit", withDesk(testDeskGaugesOfLateCommit)},
	{"DeskGaugesAgree", withDesk(testDeskGaugesAgree)},

	{"DeskFeeds", withDesk(testDeskFeeds)},
	{"DeskAddFeed", withDesk(testDeskAddFeed)},
	{"DeskRemoveFeed", withDesk(testDeskRemoveFeed)},
	{"DeskPauseFeed", withDesk(testDeskPauseFeed)},
	{"DeskRewindToTime", withDesk(testDeskRewindToTime)},
	{"DeskRewindToMessage", withDesk(testDeskRewindToMessage)},
	{"DeskRewindWithinRead", withDesk(testDeskRewindWithinRead)},
	{"DeskRewindKeepsPending", withDesk(testDeskRewindKeepsPending)},
}

// feeds returns those of the names that the store can serve at the same time.
func (h Harness) feeds(names ...string) []string {
	if h.OneFeed {
		return names[:1]
	}
	return names
}

// visit opens another feed and leaves it again, if the store can have one.
func visit(t *testing.T, h Harness, feed string) {
	t.Helper()
	if !h.OneFeed {
		joinAlone(t, h, feed, longLease).leave()
	}
}

var operator = desk.By{Who: "ann@host", Why: "a test"}

func withDesk(run func(*testing.T, Harness)) func(*testing.T, Harness) {
	return func(t *testing.T, h Harness) {
		if h.Desk == nil {
			t.Skip("n/a: no desk")
		}
		run(t, h)
	}
}

func list(t *testing.T, h Harness, filter desk.Filter) []postrider.Deferred {
	t.Helper()
	got, err := h.Desk.List(t.Context(), filter, nil, 1000)
	if err != nil {
		t.Fatalf("List: %v", err)
	}
	return got
}

// act does something to want messages.
func act(t *testing.T, h Harness, what desk.Act, filter desk.Filter, want int) {
	t.Helper()
	n, err := h.Desk.Act(t.Context(), operator, what, filter, 0)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if n != want {
		t.Fatalf("%s: did it to %d messages, want %d", what, n, want)
	}
}

// dead sets aside n messages of a key, the first of which is dead.
func dead(t *testing.T, h Harness, n int) (*reader, []postrider.Message) {
	t.Helper()
	r := joinAlone(t, h, "feed", longLease)
	return r, block(r, h, "k", n, postrider.Deferral{Status: postrider.StatusDead, Attempts: 3, Cause: "refused"})
}

// testDeskList pages through what two feeds have set aside.
func testDeskList(t *testing.T, h Harness) {
	var want []postrider.Message
	feeds := h.feeds("one", "two")
	for _, feed := range feeds {
		r := joinAlone(t, h, feed, longLease)
		if feed == "two" {
			r.settle(r.next(7, 10)...)
		}
		want = append(want, block(r, h, "k", 7, postrider.Deferral{Status: postrider.StatusDead, Attempts: 3, Cause: "refused"})...)
	}
	expectAside(t, list(t, h, desk.Filter{Feed: "one"}), want[:7]...)
	expectAside(t, list(t, h, desk.Filter{Feed: "two"}), want[7:]...)
	n := len(feeds)
	var all []postrider.Deferred
	for after := (*postrider.Deferred)(nil); ; after = &all[len(all)-1] {
		page, err := h.Desk.List(t.Context(), desk.Filter{}, after, 3)
		if err != nil {
			t.Fatalf("List: %v", err)
		}
		if len(page) > 3 {
			t.Fatalf("got a page of %d, want at most 3", len(page))
		}
		if len(page) == 0 {
			break
		}
		all = append(all, page...)
	}
	// Between feeds there is no order.
	slices.SortStableFunc(all, func(a, b postrider.Deferred) int { return strings.Compare(a.Feed, b.Feed) })
	expectAside(t, all, want...)
	whole := list(t, h, desk.Filter{Feed: "one", ID: want[0].ID}) // with its payload, as it is asked for alone
	expectAside(t, whole, want[0])
	if diff := difference(whole[0].Message, want[0]); diff != "" {
		t.Error(diff)
	}
	if d := all[0]; d.Status != postrider.StatusDead || d.Attempts != 3 || d.LastError != "refused" || !d.AvailableAt.IsZero() {
		t.Errorf("got %+v", d)
	}
	for limit, waiting := range map[int]int{0: 6 * n, 100: 6 * n, 5: 5} {
		counts, err := h.Desk.Count(t.Context(), desk.Filter{}, limit)
		if want := map[postrider.Status]int{postrider.StatusDead: n, postrider.StatusWaiting: waiting}; err != nil || !maps.Equal(counts, want) {
			t.Errorf("counted %v up to %d, and %v; want %v", counts, limit, err, want)
		}
	}
}

// testDeskFilter sets aside messages that differ in everything.
func testDeskFilter(t *testing.T, h Harness) {
	msgs := []postrider.Message{one("a"), one("b"), one("b"), one("c")}
	msgs[0].Type, msgs[1].Topic, msgs[3].TenantID = "other", "topic", "tenant"
	r := joinAlone(t, h, "feed", longLease)
	errs := []string{"HTTP 500: server-error", "timeout (500 ms)", "", "refused"}
	statuses := []postrider.Status{postrider.StatusDead, postrider.StatusDead, postrider.StatusWaiting, postrider.StatusRetry}
	for i, m := range msgs { // each in a transaction and batch of its own, so that the order of times is known
		write(t, h, m)
		batches := r.next(1, 10)
		r.setAside(batches, func(int) postrider.Deferral {
			return postrider.Deferral{Status: statuses[i], Blocking: true, Cause: errs[i], Delay: time.Hour}
		})
	}
	at := make([]time.Time, len(msgs))
	for _, d := range list(t, h, desk.Filter{}) {
		at[slices.IndexFunc(msgs, func(m postrider.Message) bool { return m.ID == d.ID })] = d.EnqueuedAt
	}
	for name, c := range map[string]struct {
		filter desk.Filter
		want   []int
	}{
		"nothing":     {desk.Filter{}, []int{0, 1, 2, 3}},
		"feed":        {desk.Filter{Feed: "another"}, nil},
		"status":      {desk.Filter{Statuses: []postrider.Status{postrider.StatusWaiting, postrider.StatusRetry}}, []int{2, 3}},
		"ID":          {desk.Filter{ID: msgs[1].ID}, []int{1}},
		"type":        {desk.Filter{Type: "other"}, []int{0}},
		"topic":       {desk.Filter{Topic: "topic"}, []int{1}},
		"key":         {desk.Filter{Key: msgs[1].OrderKey()}, []int{1, 2}},
		"tenant":      {desk.Filter{Tenant: "tenant"}, []int{3}},
		"since":       {desk.Filter{Since: at[2]}, []int{2, 3}},
		"until":       {desk.Filter{Until: at[2]}, []int{0, 1}},
		"between":     {desk.Filter{Since: at[1], Until: at[2]}, []int{1}},
		"a word":      {desk.Filter{Error: "500"}, []int{0, 1}},
		"words":       {desk.Filter{Error: "error http"}, []int{0}},
		"no such":     {desk.Filter{Error: "timeout refused"}, nil},
		"head":        {desk.Filter{Head: true}, []int{0, 1, 3}},
		"all at once": {desk.Filter{Head: true, Key: msgs[1].OrderKey(), Topic: "topic", Error: "TIMEOUT"}, []int{1}},
	} {
		var want []postrider.Message
		for _, i := range c.want {
			want = append(want, msgs[i])
		}
		t.Run(name, func(t *testing.T) {
			expectAside(t, list(t, h, c.filter), want...)
			for _, limit := range []int{0, 100} {
				counts, err := h.Desk.Count(t.Context(), c.filter, limit)
				n := 0
				for _, count := range counts {
					n += count
				}
				if err != nil || n != len(want) {
					t.Errorf("counted %v up to %d, and %v; want %d", counts, limit, err, len(want))
				}
			}
			groups, err := h.Desk.Groups(t.Context(), c.filter, 100, 10)
			n := 0
			for _, g := range groups.Groups {
				n += g.Count
			}
			if err != nil || n != len(want) || groups.Sampled != n || !groups.All {
				t.Errorf("grouped %+v, and %v; want %d", groups, err, len(want))
			}
		})
	}
}

func testDeskBlocked(t *testing.T, h Harness) {
	r := joinAlone(t, h, "feed", longLease)
	var first []postrider.Message
	for k := range 3 {
		msgs := block(r, h, fmt.Sprint("k", k), 2+k, postrider.Deferral{Status: postrider.StatusDead, Cause: "refused"})
		first = append(first, msgs[0])
	}
	for _, limit := range []int{2, 10} {
		blocked, err := h.Desk.Blocked(t.Context(), "feed", limit)
		if err != nil || len(blocked) != min(limit, 3) {
			t.Fatalf("got %d keys, and %v; want %d", len(blocked), err, min(limit, 3))
		}
		for i, b := range blocked {
			if b.Feed != "feed" || b.Key != first[i].OrderKey() || b.Waiting != 1+i || !near(b.Since, time.Now()) ||
				b.Head.ID != first[i].ID || b.Head.LastError != "refused" || len(b.Head.Payload) > 0 {
				t.Errorf("got %+v as the key blocked for longest but %d", b, i)
			}
		}
	}
	if all, err := h.Desk.Blocked(t.Context(), "", 10); err != nil || len(all) != 3 {
		t.Errorf("of all feeds: %d keys, and %v; want 3", len(all), err)
	}
	if none, err := h.Desk.Blocked(t.Context(), "another", 10); err != nil || len(none) > 0 {
		t.Errorf("of another feed: %d keys, and %v; want none", len(none), err)
	}
}

// testDeskEdit repairs a message that was refused.
func testDeskEdit(t *testing.T, h Harness) {
	r, msgs := dead(t, h, 2)
	edited := msgs[0]
	edited.Type, edited.Topic, edited.RoutingKey, edited.ContentType = "repaired", "topic", "routing", "text/plain"
	edited.Headers, edited.Payload = map[string]string{"new": "header"}, []byte("new payload")
	given := edited
	given.Key, given.TenantID = "not to be changed", "not to be changed"
	invalid := given
	invalid.Type = ""
	if err := h.Desk.Edit(t.Context(), operator, "feed", msgs[0].ID, invalid); !errors.Is(err, postrider.ErrInvalid) {
		t.Errorf("Edit without type: %v, want ErrInvalid", err)
	}
	if err := h.Desk.Edit(t.Context(), operator, "feed", msgs[1].ID, given); err == nil {
		t.Error("Edit of a message that waits: no error")
	}
	if err := h.Desk.Edit(t.Context(), operator, "feed", postrider.NewID(), given); !errors.Is(err, desk.ErrNoMessage) {
		t.Errorf("Edit of nothing: %v, want ErrNoMessage", err)
	}
	if err := h.Desk.Edit(t.Context(), operator, "feed", msgs[0].ID, given); err != nil {
		t.Fatalf("Edit: %v", err)
	}
	due := r.due(10).Messages
	expectAside(t, due, msgs...)
	if diff := difference(due[0].Message, edited); diff != "" {
		t.Error(diff)
	}
	if due[0].Status != postrider.StatusRetry || due[0].Attempts != 0 || !due[0].Blocking {
		t.Errorf("got %+v, want a new beginning", due[0])
	}
	e := newest(t, h, "feed")[0]
	if e.Action != "edit" || e.Count != 1 || e.Before["payload"] != string(msgs[0].Payload) || e.After["payload"] != "new payload" {
		t.Errorf("the record is %+v", e)
	}
}
