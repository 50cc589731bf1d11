package memory

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	memorybroker "github.com/postrider/postrider/broker/memory"
	"github.com/postrider/postrider/test/docs/scratch"
)

// TestSwap checks that a message arrives through either outbox.
func TestSwap(t *testing.T) {
	pool, broker := scratch.Pool(t), memorybroker.New()
	inMemory, err := InMemory(t.Context(), broker)
	if err != nil {
		t.Fatal(err)
	}
	inDatabase, err := InDatabase(t.Context(), pool, broker)
	if err != nil {
		t.Fatal(err)
	}
	for _, outbox := range []postrider.Outbox[pgx.Tx]{inMemory, inDatabase} {
		err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			return outbox.Enqueue(t.Context(), tx, postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: "42"}, nil))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := broker.Wait(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
}
