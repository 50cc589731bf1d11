// Tests of the snippets of docs/consuming.md.
package main

import (
	"context"
	"log/slog"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/test/docs/scratch"
)

const charges = "CREATE TABLE charges (order_id text, customer text, cents int)"

// TestDirect charges for an order that a relay passes to the inbox.
func TestDirect(t *testing.T) {
	pool, db := scratch.Open(t, charges)
	billing, err := withRetry(db)
	if err != nil {
		t.Fatal(err)
	}
	inbox.On(billing, "order.placed", charge)
	if _, err := pool.Exec(t.Context(), `SELECT postrider.enqueue('order.placed', 'order', '42', '{"order": "42", "cents": 700}')`); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- direct(ctx, db, billing) }()
	scratch.Await(t, pool, "SELECT count(*) FROM charges WHERE order_id = '42'", 1)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestByType handles messages of two types, one of them in batches.
func TestByType(t *testing.T) {
	pool, db := scratch.Open(t, charges, "CREATE TABLE views (order_id text)")
	billing, err := byType(db, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for messageType, payload := range map[string]string{"order.placed": `{"order": "42"}`, "order.viewed": `{"Order": "42"}`} {
		if err := billing.Receive(t.Context(), postrider.Message{ID: postrider.NewID(), Type: messageType, Payload: []byte(payload)}); err != nil {
			t.Fatal(err)
		}
	}
	if n := scratch.Count(t, pool, "SELECT count(*) FROM charges JOIN views USING (order_id)"); n != 1 {
		t.Errorf("%d orders were charged and viewed", n)
	}
}

// TestClaim checks that a message that arrives twice is charged once.
func TestClaim(t *testing.T) {
	pool, db := scratch.Open(t, charges)
	store := db.Inbox()
	m := postrider.Message{ID: postrider.NewID()}
	for range 2 {
		err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			return claim(t.Context(), tx, store, m, OrderPlaced{Order: "42"})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if n := scratch.Count(t, pool, "SELECT count(*) FROM charges"); n != 1 {
		t.Errorf("%d charges", n)
	}
}

// TestKafka checks that the address on the page is valid.
func TestKafka(t *testing.T) {
	orders, err := fromKafka()
	if err != nil {
		t.Fatal(err)
	}
	if err := orders.Close(); err != nil {
		t.Error(err)
	}
}
