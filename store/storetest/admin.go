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
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
)

var adminTests = []test{
	{"AdminList", withAdmin(testAdminList)},
	{"AdminFilter", withAdmin(testAdminFilter)},
	{"AdminBlocked", withAdmin(testAdminBlocked)},
	{"AdminRetry", withAdmin(testAdminRetry)},
	{"AdminSkip", withAdmin(testAdminSkip)},
	{"AdminPark", withAdmin(testAdminPark)},
	{"AdminDiscard", withAdmin(testAdminDiscard)},
	{"AdminActOnMany", withAdmin(testAdminActOnMany)},
	{"AdminEdit", withAdmin(testAdminEdit)},
	{"AdminDecisionStands", withAdmin(testAdminDecisionStands)},
	{"AdminRecords", withAdmin(testAdminRecords)},
	{"AdminLongest", withAdmin(testAdminLongest)},
	{"ExcludeDiscard", withAdmin(testExcludeDiscard)},
	{"ExcludePark", withAdmin(testExcludePark)},
	{"ExcludeUnpassed", withAdmin(testExcludeUnpassed)},
	{"DeferBare", withAdmin(testDeferBare)},

	{"AdminMessages", withAdmin(testAdminMessages)},
	{"AdminMessagesInPages", withAdmin(testAdminMessagesInPages)},
	{"AdminJourney", withAdmin(testAdminJourney)},
	{"AdminGauges", withAdmin(testAdminGauges)},
	{"AdminGaugesOfLateCommit", withAdmin(testAdminGaugesOfLateCommit)},
	{"AdminGaugesAgree", withAdmin(testAdminGaugesAgree)},

	{"AdminFeeds", withAdmin(testAdminFeeds)},
	{"AdminAddFeed", withAdmin(testAdminAddFeed)},
	{"AdminRemoveFeed", withAdmin(testAdminRemoveFeed)},
	{"AdminPauseFeed", withAdmin(testAdminPauseFeed)},
	{"AdminRewindToTime", withAdmin(testAdminRewindToTime)},
	{"AdminRewindToMessage", withAdmin(testAdminRewindToMessage)},
	{"AdminRewindWithinRead", withAdmin(testAdminRewindWithinRead)},
	{"AdminRewindKeepsPending", withAdmin(testAdminRewindKeepsPending)},
}

// feeds returns those of the names that the store can serve at the same time.
func (h Harness) feeds(names ...string) []string {
	if h.OneFeed {
		return names[:1]
	}
	return names
}

// visit opens another feed and leaves it, if the store can have one.
func visit(t *testing.T, h Harness, feed string) {
	t.Helper()
	if !h.OneFeed {
		joinAlone(t, h, feed, longLease).leave()
	}
}

var operator = admin.By{Who: "ann@host", Why: "a test"}

func withAdmin(run func(*testing.T, Harness)) func(*testing.T, Harness) {
	return func(t *testing.T, h Harness) {
		if h.Admin == nil {
			t.Skip("n/a: no admin API")
		}
		run(t, h)
	}
}

func list(t *testing.T, h Harness, filter admin.Filter) []feeds.Deferred {
	t.Helper()
	got, err := h.Admin.List(t.Context(), filter, nil, 1000)
	if err != nil {
		t.Fatalf("List: %v", err)
	}
	return got
}

// act applies an act and checks that it affects want messages.
func act(t *testing.T, h Harness, what admin.Act, filter admin.Filter, want int) {
	t.Helper()
	n, err := h.Admin.Act(t.Context(), operator, what, filter, 0)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if n != want {
		t.Fatalf("%s: did it to %d messages, want %d", what, n, want)
	}
}

// dead defers n messages of a key and makes the first one a dead letter.
func dead(t *testing.T, h Harness, n int) (*reader, []postrider.Message) {
	t.Helper()
	r := joinAlone(t, h, "feed", longLease)
	return r, block(r, h, "k", n, feeds.Deferral{Status: feeds.StatusDead, Attempts: 3, Cause: "refused"})
}

// testAdminList pages through the deferred messages of two feeds.
func testAdminList(t *testing.T, h Harness) {
	var want []postrider.Message
	both := h.feeds("one", "two")
	for _, feed := range both {
		r := joinAlone(t, h, feed, longLease)
		if feed == "two" {
			r.settle(r.next(7, 10)...)
		}
		want = append(want, block(r, h, "k", 7, feeds.Deferral{Status: feeds.StatusDead, Attempts: 3, Cause: "refused"})...)
	}
	expectDeferred(t, list(t, h, admin.Filter{Feed: "one"}), want[:7]...)
	expectDeferred(t, list(t, h, admin.Filter{Feed: "two"}), want[7:]...)
	n := len(both)
	var all []feeds.Deferred
	for after := (*feeds.Deferred)(nil); ; after = &all[len(all)-1] {
		page, err := h.Admin.List(t.Context(), admin.Filter{}, after, 3)
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
	// The feeds have no order between them.
	slices.SortStableFunc(all, func(a, b feeds.Deferred) int { return strings.Compare(a.Feed, b.Feed) })
	expectDeferred(t, all, want...)
	whole := list(t, h, admin.Filter{Feed: "one", ID: want[0].ID}) // with its payload, because the ID was given
	expectDeferred(t, whole, want[0])
	if diff := difference(whole[0].Message, want[0]); diff != "" {
		t.Error(diff)
	}
	if d := all[0]; d.Status != feeds.StatusDead || d.Attempts != 3 || d.LastError != "refused" || !d.AvailableAt.IsZero() {
		t.Errorf("got %+v", d)
	}
	for limit, waiting := range map[int]int{0: 6 * n, 100: 6 * n, 5: 5} {
		counts, err := h.Admin.Count(t.Context(), admin.Filter{}, limit)
		if want := map[feeds.Status]int{feeds.StatusDead: n, feeds.StatusWaiting: waiting}; err != nil || !maps.Equal(counts, want) {
			t.Errorf("counted %v up to %d, and %v; want %v", counts, limit, err, want)
		}
	}
}

// testAdminFilter defers messages that differ in every field.
func testAdminFilter(t *testing.T, h Harness) {
	msgs := []postrider.Message{one("a"), one("b"), one("b"), one("c")}
	msgs[0].Type, msgs[1].Topic, msgs[3].TenantID = "other", "topic", "tenant"
	r := joinAlone(t, h, "feed", longLease)
	errs := []string{"HTTP 500: server-error", "timeout (500 ms)", "", "refused"}
	statuses := []feeds.Status{feeds.StatusDead, feeds.StatusDead, feeds.StatusWaiting, feeds.StatusRetry}
	for i, m := range msgs { // each in its own transaction and batch, so that the order of times is known
		write(t, h, m)
		batches := r.next(1, 10)
		r.deferSome(batches, func(int) feeds.Deferral {
			return feeds.Deferral{Status: statuses[i], Blocking: true, Cause: errs[i], Delay: time.Hour}
		})
	}
	at := make([]time.Time, len(msgs))
	for _, d := range list(t, h, admin.Filter{}) {
		at[slices.IndexFunc(msgs, func(m postrider.Message) bool { return m.ID == d.ID })] = d.EnqueuedAt
	}
	for name, c := range map[string]struct {
		filter admin.Filter
		want   []int
	}{
		"nothing":     {admin.Filter{}, []int{0, 1, 2, 3}},
		"feed":        {admin.Filter{Feed: "another"}, nil},
		"status":      {admin.Filter{Statuses: []feeds.Status{feeds.StatusWaiting, feeds.StatusRetry}}, []int{2, 3}},
		"ID":          {admin.Filter{ID: msgs[1].ID}, []int{1}},
		"type":        {admin.Filter{Type: "other"}, []int{0}},
		"topic":       {admin.Filter{Topic: "topic"}, []int{1}},
		"key":         {admin.Filter{Key: msgs[1].OrderKey()}, []int{1, 2}},
		"tenant":      {admin.Filter{Tenant: "tenant"}, []int{3}},
		"since":       {admin.Filter{Since: at[2]}, []int{2, 3}},
		"until":       {admin.Filter{Until: at[2]}, []int{0, 1}},
		"between":     {admin.Filter{Since: at[1], Until: at[2]}, []int{1}},
		"a word":      {admin.Filter{Error: "500"}, []int{0, 1}},
		"words":       {admin.Filter{Error: "error http"}, []int{0}},
		"no such":     {admin.Filter{Error: "timeout refused"}, nil},
		"head":        {admin.Filter{Head: true}, []int{0, 1, 3}},
		"all at once": {admin.Filter{Head: true, Key: msgs[1].OrderKey(), Topic: "topic", Error: "TIMEOUT"}, []int{1}},
	} {
		var want []postrider.Message
		for _, i := range c.want {
			want = append(want, msgs[i])
		}
		t.Run(name, func(t *testing.T) {
			expectDeferred(t, list(t, h, c.filter), want...)
			for _, limit := range []int{0, 100} {
				counts, err := h.Admin.Count(t.Context(), c.filter, limit)
				n := 0
				for _, count := range counts {
					n += count
				}
				if err != nil || n != len(want) {
					t.Errorf("counted %v up to %d, and %v; want %d", counts, limit, err, len(want))
				}
			}
			groups, err := h.Admin.Groups(t.Context(), c.filter, 100, 10)
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

func testAdminBlocked(t *testing.T, h Harness) {
	r := joinAlone(t, h, "feed", longLease)
	var first []postrider.Message
	for k := range 3 {
		msgs := block(r, h, fmt.Sprint("k", k), 2+k, feeds.Deferral{Status: feeds.StatusDead, Cause: "refused"})
		first = append(first, msgs[0])
	}
	for _, limit := range []int{2, 10} {
		blocked, err := h.Admin.Blocked(t.Context(), "feed", limit)
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
	if all, err := h.Admin.Blocked(t.Context(), "", 10); err != nil || len(all) != 3 {
		t.Errorf("of all feeds: %d keys, and %v; want 3", len(all), err)
	}
	if none, err := h.Admin.Blocked(t.Context(), "another", 10); err != nil || len(none) > 0 {
		t.Errorf("of another feed: %d keys, and %v; want none", len(none), err)
	}
}

// testAdminEdit edits a message that was rejected.
func testAdminEdit(t *testing.T, h Harness) {
	r, msgs := dead(t, h, 2)
	edited := msgs[0]
	edited.Type, edited.Topic, edited.RoutingKey, edited.ContentType = "repaired", "topic", "routing", "text/plain"
	edited.Headers, edited.Payload = map[string]string{"new": "header"}, []byte("new payload")
	given := edited
	given.Key, given.TenantID = "not to be changed", "not to be changed"
	invalid := given
	invalid.Type = ""
	if err := h.Admin.Edit(t.Context(), operator, "feed", msgs[0].ID, invalid); !errors.Is(err, postrider.ErrInvalid) {
		t.Errorf("Edit without type: %v, want ErrInvalid", err)
	}
	if err := h.Admin.Edit(t.Context(), operator, "feed", msgs[1].ID, given); err == nil {
		t.Error("Edit of a message that waits: no error")
	}
	if err := h.Admin.Edit(t.Context(), operator, "feed", postrider.NewID(), given); !errors.Is(err, admin.ErrNoMessage) {
		t.Errorf("Edit of nothing: %v, want ErrNoMessage", err)
	}
	if err := h.Admin.Edit(t.Context(), operator, "feed", msgs[0].ID, given); err != nil {
		t.Fatalf("Edit: %v", err)
	}
	due := r.due(10).Messages
	expectDeferred(t, due, msgs...)
	if diff := difference(due[0].Message, edited); diff != "" {
		t.Error(diff)
	}
	if due[0].Status != feeds.StatusRetry || due[0].Attempts != 0 || !due[0].Blocking {
		t.Errorf("got %+v, want a new beginning", due[0])
	}
	e := newest(t, h)[0]
	if e.Action != "edit" || e.Count != 1 || e.Before["payload"] != string(msgs[0].Payload) || e.After["payload"] != "new payload" {
		t.Errorf("the record is %+v", e)
	}
}
