package unitofwork_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/memory"
	"github.com/postrider/postrider/relay"
	store "github.com/postrider/postrider/store/memory"
	"github.com/postrider/postrider/store/unitofwork"
)

// Order is an aggregate. It records its events, and depends on neither a store nor a transaction.
type Order struct {
	unitofwork.Events
	ID    string
	Total int
}

func (o *Order) Place() {
	o.Record(postrider.UniqueEvent("order.placed", postrider.Aggregate{Type: "order", ID: o.ID}, nil))
}

// Account has its events in a field, so that other packages cannot record.
type Account struct {
	ID     string
	events unitofwork.Events
}

func (a *Account) Charge(amount int) {
	a.events.Record(postrider.Event("account.charged", postrider.Aggregate{Type: "account", ID: a.ID}, map[string]int{"amount": amount}))
}

// accounts is a repository. It tracks the aggregates that it returns, so that callers need not.
type accounts struct{}

func (accounts) Get(ctx context.Context, tx *store.Tx, id string) (*Account, error) {
	a := &Account{ID: id} // … SELECT … FOR UPDATE, by tx …
	return a, unitofwork.Track(ctx, &a.events)
}

// A Work is a transactor that also writes the events of the aggregates that it tracks.
func ExampleNew() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	s, broker := store.Open(store.Config{Shards: 1}), memory.New()
	var work postrider.Transactor[*store.Tx] = unitofwork.New(s, s) // with a database: its transactor and its outbox

	err := work.Do(ctx, func(ctx context.Context, tx *store.Tx) error {
		order := &Order{ID: "42", Total: 30}
		order.Place()
		if err := unitofwork.Track(ctx, order); err != nil {
			return err
		}
		account, err := accounts{}.Get(ctx, tx, "7")
		if err != nil {
			return err
		}
		account.Charge(order.Total)
		// … INSERT INTO orders, UPDATE accounts, by tx …
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}

	carrier, err := relay.New(s, broker, relay.Config{})
	if err != nil {
		log.Fatal(err)
	}
	go func() { _ = carrier.Run(ctx) }()
	arrived, err := broker.Wait(ctx, 2)
	for _, m := range arrived {
		fmt.Println(m.Type, m.OrderKey(), string(m.Payload))
	}
	fmt.Println(err)
	// Output:
	// order.placed order/42 null
	// account.charged account/7 {"amount":30}
	// <nil>
}

// One unit without a Work. The events stay with the aggregate until they are written.
func ExampleDo() {
	ctx := context.Background()
	s := store.Open(store.Config{})
	order := &Order{ID: "42"}
	order.Place()

	for _, outcome := range []error{errors.New("no connection"), nil} {
		err := unitofwork.Do(ctx, s, s, func(ctx context.Context, tx *store.Tx) error {
			if err := unitofwork.Track(ctx, order); err != nil {
				return err
			}
			return outcome
		})
		fmt.Println(err, len(order.Recorded()))
	}
	// Output:
	// no connection 1
	// <nil> 0
}

// Aggregates can be tested without a store.
func ExampleEvents_Recorded() {
	order := &Order{ID: "42"}
	order.Place()
	for _, m := range order.Recorded() {
		fmt.Println(m.Type, m.DedupKey)
	}
	// Output: order.placed order.placed:order:42:1
}

// Track returns an error for events that no unit would write.
func ExampleTrack() {
	var anything unitofwork.Aggregate = &Order{ID: "42"}
	err := unitofwork.Track(context.Background(), anything)
	fmt.Println(errors.Is(err, unitofwork.ErrNoUnit), err)
	// Output: true unitofwork: no unit of work is under way in this context
}
