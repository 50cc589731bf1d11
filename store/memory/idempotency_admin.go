package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/postrider/postrider/idempotency"
)

var _ idempotency.Admin = (*Idempotency)(nil)

// List implements [idempotency.Admin]. It omits keys whose retention is over.
func (i *Idempotency) List(ctx context.Context, filter idempotency.Filter, after *idempotency.Kept, limit int) ([]idempotency.Kept, error) {
	var page []idempotency.Kept
	err := i.store.locked(ctx, func(now time.Time) error {
		for id, k := range i.keys {
			if !k.expires.After(now) {
				continue
			}
			kept := idempotency.Kept{
				Tenant: id.Tenant, Principal: id.Principal, Route: id.Route, Key: id.Key, Done: k.answer != nil, Expires: k.expires,
			}
			if kept.Done {
				stored, err := k.answer.MarshalBinary()
				if err != nil {
					return err
				}
				kept.Bytes = len(stored)
			} else {
				kept.Leased = k.leased
			}
			if keeps(&filter, &kept) && (after == nil || byExpiry(kept, *after) > 0) {
				page = append(page, kept)
			}
		}
		return nil
	})
	slices.SortFunc(page, byExpiry)
	return page[:min(len(page), limit)], err
}

func keeps(f *idempotency.Filter, k *idempotency.Kept) bool {
	return (f.Tenant == "" || f.Tenant == k.Tenant) && (f.Principal == "" || f.Principal == k.Principal) &&
		(f.Route == "" || f.Route == k.Route) && (f.Key == "" || f.Key == k.Key) && !(f.Open && k.Done)
}

// byExpiry orders keys by expiry, the latest first.
func byExpiry(a, b idempotency.Kept) int {
	return cmp.Or(b.Expires.Compare(a.Expires), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Principal, b.Principal),
		cmp.Compare(a.Route, b.Route), cmp.Compare(a.Key, b.Key))
}
