package memory_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/postrider/postrider"
	broker "github.com/postrider/postrider/broker/memory"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/store/memory"
)

// An outbox without any table, for an application with its own transactions: messages become
// visible after the commit. The dispatcher is a relay with an interval, batch size and pauses.
func ExampleOutbox() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	store, destination := memory.Open(memory.Config{}), broker.New()
	var outbox postrider.Outbox[*sql.Tx] = memory.Outbox[*sql.Tx](store) // to use another store, change this line
	var db postrider.Transactor[*sql.Tx] = other{memory.Open(memory.Config{})}

	dispatcher, err := relay.New(store, destination, relay.Config{
		PollMax:   200 * time.Millisecond,
		BatchSize: 50,
		Retry:     retry.Policy{Pauses: []time.Duration{time.Second, 5 * time.Second, 30 * time.Second}},
		Logger:    slog.New(slog.DiscardHandler),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	stopped := make(chan error)
	go func() { stopped <- dispatcher.Run(ctx) }() // start

	for id, outcome := range []error{nil, errors.New("out of stock"), nil} {
		err := db.Do(ctx, func(ctx context.Context, tx *sql.Tx) error {
			if err := outbox.Enqueue(ctx, tx, postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: fmt.Sprint(id)}, nil)); err != nil {
				return err
			}
			return outcome
		})
		fmt.Println(id, err)
	}
	arrived, err := destination.Wait(ctx, 2)
	fmt.Println(len(arrived), "have arrived", err)

	stop()
	fmt.Println(<-stopped)
	// Output:
	// 0 <nil>
	// 1 out of stock
	// 2 <nil>
	// 2 have arrived <nil>
	// <nil>
}

// A transaction of the store, with Begin and with Do.
func ExampleDB_Do() {
	ctx := context.Background()
	store := memory.Open(memory.Config{Shards: 4, DedupWindow: time.Hour})
	fact := postrider.UniqueEvent("order.placed", postrider.Aggregate{Type: "order", ID: "42"}, nil)

	tx := store.Begin()
	fmt.Println(store.Enqueue(ctx, tx, fact), tx.Commit())
	fmt.Println(errors.Is(tx.Rollback(), memory.ErrTxDone))

	err := store.Do(ctx, func(ctx context.Context, tx *memory.Tx) error {
		repeats, err := store.Offer(ctx, tx, fact)
		fmt.Println("left out:", len(repeats))
		return err
	})
	fmt.Println(err)
	// Output:
	// <nil> <nil>
	// true
	// left out: 1
	// <nil>
}
