package admin_test

import (
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
)

func TestGroupErrors(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var sample []feeds.Deferred
	for i, text := range []string{
		"order 17: amount is negative", "connection refused", "order 18: amount is negative",
		"order 01997f3c-aaaa-7000-8000-000000000001: amount is negative",
	} {
		sample = append(sample, feeds.Deferred{
			Message: postrider.Message{Type: "order.placed"}, Feed: "default", LastError: text, DeferredAt: at.Add(time.Duration(i)),
		})
	}
	groups := admin.GroupErrors(sample, 10)
	if len(groups) != 2 {
		t.Fatalf("want 2 groups, got %+v", groups)
	}
	first := groups[0]
	if first.Count != 3 || first.Error != sample[3].LastError || first.Words != "order amount is negative" {
		t.Errorf("the largest group is %+v", first)
	}
	for i := range sample {
		want := i != 1
		if got := (&admin.Filter{Error: first.Words}).Matches(&sample[i]); got != want {
			t.Errorf("the words of the group match %q: %v", sample[i].LastError, got)
		}
	}
	if one := admin.GroupErrors(sample, 1); len(one) != 1 || one[0].Count != 3 {
		t.Errorf("limited to one: %+v", one)
	}
}
