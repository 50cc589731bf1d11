package storetest

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/postrider/postrider/idempotency"
)

// RunKeys tests the admin API of an empty store of idempotency keys.
func RunKeys[Tx any](t *testing.T, store idempotency.Store[Tx], operator idempotency.Admin) {
	answer := idempotency.Answer{Status: 201, Header: http.Header{"Location": {"/orders/1"}}, Body: make([]byte, 1000)}
	for i := range 7 {
		c := idempotency.Claim{
			ID:    idempotency.ID{Tenant: "acme", Principal: "ann", Route: "POST /orders", Key: fmt.Sprint("k", i)},
			Token: "token", Lease: time.Minute, Retention: time.Hour + time.Duration(i/2)*time.Minute,
		}
		switch i {
		case 1:
			c.ID.Tenant = "other"
		case 2:
			c.ID.Principal = "bob"
		case 3:
			c.ID.Route = "POST /payments"
		}
		if _, err := store.Claim(t.Context(), c); err != nil {
			t.Fatalf("Claim: %v", err)
		}
		if i >= 4 {
			if err := store.Save(t.Context(), c, answer); err != nil {
				t.Fatalf("Save: %v", err)
			}
		}
	}
	all := keys(t, operator, idempotency.Filter{}, 100)
	if !slices.IsSortedFunc(all, func(a, b idempotency.Kept) int { return b.Expires.Compare(a.Expires) }) || len(all) != 7 {
		t.Fatalf("got %+v, want seven, those that expire last first", all)
	}
	for _, k := range all {
		done := k.Key >= "k4"
		if k.Done != done || (k.Bytes >= 1000) != done || near(k.Leased, time.Now().Add(time.Minute)) == done || k.Expires.Before(time.Now()) {
			t.Errorf("got %+v", k)
		}
	}
	for _, size := range []int{1, 2, 6, 7} {
		if paged := keys(t, operator, idempotency.Filter{}, size); !slices.Equal(paged, all) {
			t.Errorf("in pages of %d: %+v", size, paged)
		}
	}
	for name, c := range map[string]struct {
		filter idempotency.Filter
		want   []string
	}{
		"tenant":    {idempotency.Filter{Tenant: "other"}, []string{"k1"}},
		"principal": {idempotency.Filter{Principal: "bob"}, []string{"k2"}},
		"route":     {idempotency.Filter{Route: "POST /payments"}, []string{"k3"}},
		"key":       {idempotency.Filter{Key: "k5"}, []string{"k5"}},
		"open":      {idempotency.Filter{Open: true}, []string{"k0", "k1", "k2", "k3"}},
		"nothing":   {idempotency.Filter{Tenant: "acme", Key: "k1"}, nil},
	} {
		var got []string
		for _, k := range keys(t, operator, c.filter, 100) {
			got = append(got, k.Key)
		}
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func keys(t *testing.T, operator idempotency.Admin, filter idempotency.Filter, limit int) []idempotency.Kept {
	t.Helper()
	var all []idempotency.Kept
	for after := (*idempotency.Kept)(nil); ; after = &all[len(all)-1] {
		page, err := operator.List(t.Context(), filter, after, limit)
		if err != nil || len(page) > limit {
			t.Fatalf("List: %d keys, %v; want at most %d", len(page), err, limit)
		}
		if all = append(all, page...); len(page) < limit {
			return all
		}
	}
}
