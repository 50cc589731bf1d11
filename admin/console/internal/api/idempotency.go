package api

import (
	"context"
	"time"

	"github.com/postrider/postrider/idempotency"
)

// IdempotencyKey is a key that a client has sent with a request. The stored response is never
// shown.
type IdempotencyKey struct {
	Tenant    string    `json:"tenant,omitempty"`
	Principal string    `json:"principal,omitempty"`
	Route     string    `json:"route"`
	Key       string    `json:"key"`
	Done      bool      `json:"done"`
	Bytes     int       `json:"bytes,omitempty"`
	Leased    time.Time `json:"leased,omitzero"`
	Expires   time.Time `json:"expires"`
}

// IdempotencyKeys is a request for a page of keys.
type IdempotencyKeys struct {
	DB
	Tenant    string `query:"tenant"`
	Principal string `query:"principal"`
	Route     string `query:"route"`
	Key       string `query:"key"`
	Open      bool   `query:"open" doc:"only those without an answer"`
	Paging
}

func (s *Server) idempotency(ctx context.Context, d *database, in *IdempotencyKeys) (*Page[IdempotencyKey], error) {
	keys, err := has(d.Keys, "idempotency keys")
	if err != nil {
		return nil, err
	}
	at, err := placeIn("idempotency", in.Cursor, 4)
	if err != nil {
		return nil, err
	}
	var after *idempotency.Kept
	if at != nil {
		after = &idempotency.Kept{Tenant: at.Words[0], Principal: at.Words[1], Route: at.Words[2], Key: at.Words[3], Expires: at.Time}
	}
	filter := idempotency.Filter{Tenant: in.Tenant, Principal: in.Principal, Route: in.Route, Key: in.Key, Open: in.Open}
	found, err := keys.List(ctx, filter, after, in.Limit+1)
	if err != nil {
		return nil, err
	}
	page := &Page[IdempotencyKey]{Items: []IdempotencyKey{}}
	for i := range found[:min(len(found), in.Limit)] {
		k := &found[i]
		page.Items = append(page.Items, IdempotencyKey{
			k.Tenant, k.Principal, k.Route, k.Key, k.Done, k.Bytes, k.Leased.UTC(), k.Expires.UTC(),
		})
	}
	if len(found) > in.Limit {
		k := &found[in.Limit-1]
		page.Cursor = place{List: "idempotency", Time: k.Expires, Words: []string{k.Tenant, k.Principal, k.Route, k.Key}}.cursor()
	}
	return page, nil
}
