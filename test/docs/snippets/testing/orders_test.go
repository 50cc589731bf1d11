package testing

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	memorybroker "github.com/postrider/postrider/broker/memory"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/postridertest"
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/store/memory"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/test/docs/scratch"
)

//docs:begin enqueued

func TestPlaceOrder(t *testing.T) {
	store := memory.Open(memory.Config{}) // github.com/postrider/postrider/store/memory
	outbox := postridertest.Record[*memory.Tx](store)

	err := store.Do(t.Context(), func(ctx context.Context, tx *memory.Tx) error {
		return PlaceOrder(ctx, tx, outbox, "42", 30) // your use case; it takes a postrider.Outbox[Tx]
	})
	if err != nil {
		t.Fatal(err)
	}
	outbox.Exactly(t, postridertest.Match{
		Type:        "order.placed",
		AggregateID: "42",
		DedupKey:    "order.placed:order:42:1",
		Payload:     map[string]any{"total": 30}, // the payload may have more fields
	})
}

//docs:end

//docs:begin faults

func TestBilling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // testing/synctest: time is virtual, pauses cost nothing
		w := postridertest.New(t, postridertest.Config{Faults: postridertest.Faults{
			Duplicate:  postridertest.Every(2), // every second message is published twice
			Crash:      postridertest.Nth(3),   // the relay dies behind the third publication, before it records it
			LoseAck:    postridertest.Nth(1),   // the first acknowledgement does not reach the broker
			LoseCommit: postridertest.Nth(2),   // the consumer dies just before its second commit
		}})
		charged := map[string]int{}
		billing := w.Inbox("billing", inbox.Config{Retry: retry.Policy{Pauses: []time.Duration{time.Hour}}})
		inbox.On(billing, "order.placed", func(ctx context.Context, tx *memory.Tx, order Order) error {
			postrider.AfterCommit(ctx, func() { charged[order.ID]++ }) // stands for UPDATE …, by tx
			return nil
		})

		for _, id := range []string{"1", "2", "3"} {
			err := w.Store.Do(t.Context(), func(ctx context.Context, tx *memory.Tx) error {
				return PlaceOrder(ctx, tx, w.Outbox, id, 30)
			})
			if err != nil {
				t.Fatal(err)
			}
		}

		report := w.Settle() // deliver, retry, wait, until nothing is left to do
		report.RequireClean(t)
		for id, n := range charged {
			if n != 1 {
				t.Fatalf("order %s was charged %d times\n%v", id, n, report)
			}
		}
	})
}

//docs:end

//docs:begin postgres

func TestPlaceOrderOnPostgres(t *testing.T) {
	//docs:skip pool is your own
	pool := scratch.Pool(t)
	//docs:resume
	ctx := t.Context()
	db, err := postgres.Open(pool, postgres.Config{})
	if err != nil {
		t.Fatal(err)
	}
	outbox := postridertest.Record[pgx.Tx](db.Outbox())

	tx, err := pool.Begin(ctx) // each test in a transaction that is rolled back
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(ctx)
	if err := PlaceOrder(ctx, tx, outbox, "42", 30); err != nil {
		t.Fatal(err)
	}
	outbox.In(tx).Enqueued(t, postridertest.Match{Type: "order.placed", AggregateID: "42"})
}

//docs:end

// TestInject checks that faults can be injected in front of real ports.
func TestInject(t *testing.T) {
	broker := memorybroker.New()
	var natsPublisher postrider.Publisher = broker
	natsConsumer := broker.Consumer("order.placed", "billing", 1)
	_, db := scratch.Open(t)
	//docs:begin inject
	faults := postridertest.Inject(t, postridertest.Faults{LoseAnswer: postridertest.Sometimes(0.1), LoseAck: postridertest.Every(3)})
	pub := faults.Publisher(natsPublisher)                   // for relay.New
	consumer := faults.Consumer(natsConsumer)                // for Run of an inbox
	receipts := postridertest.InboxStore(faults, db.Inbox()) // for inbox.New

	// What Crash kills: relay.New gets process.Store(store), and Run the context of process.Context(ctx).
	process := faults.Process()
	//docs:end
	if pub == nil || consumer == nil || receipts == nil || process == nil {
		t.Error("something is missing")
	}
}
