package readme

import (
	"context"
	"testing"

	memorybroker "github.com/postrider/postrider/broker/memory"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/test/docs/scratch"
)

// TestReadme places an order as README.md does, and waits until it was charged.
func TestReadme(t *testing.T) {
	pool := scratch.Pool(t, "CREATE TABLE orders (id bigserial PRIMARY KEY, cents int)",
		"CREATE TABLE charges (order_id text PRIMARY KEY, cents int)")
	outbox, err := postgres.NewOutbox(postgres.OutboxConfig{})
	if err != nil {
		t.Fatal(err)
	}
	store, err := postgres.New(pool, postgres.Config{})
	if err != nil {
		t.Fatal(err)
	}
	received, err := postgres.NewInbox(pool, postgres.Config{})
	if err != nil {
		t.Fatal(err)
	}
	broker := memorybroker.New()
	carrier, err := relay.New(store, broker, relay.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- carrier.Run(ctx) }()
	go func() { ended <- Receive(ctx, received, broker.Consumer("", "billing", 1)) }() // there are no routes, and so no topics

	if err := Write(ctx, pool, outbox, 700); err != nil {
		t.Fatal(err)
	}
	scratch.Await(t, pool, "SELECT count(*) FROM charges WHERE cents = 700", 1)
	stop()
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
