// Package testing contains the use case of docs/testing.md; its tests are the snippets of that
// page.
package testing

import (
	"context"

	"github.com/postrider/postrider"
)

// Order is an order of the shop.
type Order struct {
	ID    string `json:"id"`
	Total int    `json:"total"`
}

// PlaceOrder is the use case under test.
func PlaceOrder[Tx any](ctx context.Context, tx Tx, outbox postrider.Outbox[Tx], id string, total int) error {
	return outbox.Enqueue(ctx, tx, postrider.UniqueEvent("order.placed", postrider.Aggregate{Type: "order", ID: id}, Order{id, total}))
}
