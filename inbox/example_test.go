package inbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/broker/codec"
	broker "github.com/postrider/postrider/broker/memory"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/memory"
)

// OrderPlaced is the payload of "order.placed".
type OrderPlaced struct {
	Order string `json:"order"`
	Cents int    `json:"cents"`
}

// A consumer that charges for orders. In an application the store is the Inbox of a database that
// postgres.Open opened, the transactions are pgx.Tx, and the consumer is that of a broker, such as
// nats.NewConsumer.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	store := memory.Open(memory.Config{})
	queue := broker.New()

	billing, err := inbox.New(store.Inbox(), "billing", inbox.Config{})
	if err != nil {
		panic(err)
	}
	inbox.On(billing, "order.placed", func(ctx context.Context, tx *memory.Tx, o OrderPlaced) error {
		fmt.Printf("charge %d cents for order %s\n", o.Cents, o.Order)
		// Whatever is written through tx, messages included, commits together with the record of
		// this message.
		return store.Enqueue(ctx, tx, postrider.Event("order.charged", postrider.Aggregate{Type: "order", ID: o.Order}, o))
	})
	done := make(chan error)
	go func() { done <- billing.Run(ctx, queue.Consumer("orders", "billing", 0)) }()

	m := postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: "7"}, OrderPlaced{"7", 1999})
	m.Topic = "orders"
	queue.Publish(ctx, []postrider.Message{m, m}) // a broker may deliver twice

	for billing.Stats().Repeated == 0 {
		time.Sleep(time.Millisecond)
	}
	stop()
	fmt.Println(<-done, billing.Stats().Handled)
	// Output:
	// charge 1999 cents for order 7
	// <nil> 1
}

// Older payloads are converted to the schema version that the handler knows.
func ExampleOn() {
	store := memory.Open(memory.Config{})
	billing, err := inbox.New(store.Inbox(), "billing", inbox.Config{})
	if err != nil {
		panic(err)
	}
	versions := []inbox.Option{
		inbox.Version(2),
		inbox.Upcast(1, func(payload []byte) ([]byte, error) { // was called "price"
			return bytes.Replace(payload, []byte(`"price"`), []byte(`"cents"`), 1), nil
		}),
		inbox.RefuseUnknownFields(),
	}
	inbox.On(billing, "order.placed",
		func(ctx context.Context, _ *memory.Tx, o OrderPlaced) error {
			m, _ := inbox.Message(ctx) // what the payload does not tell
			fmt.Println(m.AggregateID, o.Cents)
			return nil
		}, versions...)
	old := postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: "7"}, []byte(`{"order":"7","price":1999}`))
	if err := billing.Receive(context.Background(), old); err != nil {
		panic(err)
	}
	// Output: 7 1999
}

// A handler that fails is called again after a backoff. After the last attempt the message is a
// dead letter, for an operator.
func ExampleInbox_Handle() {
	ctx := context.Background()
	store := memory.Open(memory.Config{})
	billing, err := inbox.New(store.Inbox(), "billing", inbox.Config{
		Retry:         retry.Policy{Pauses: []time.Duration{time.Second, time.Minute, time.Hour}},
		Order:         inbox.Strict, // or inbox.Skip: later messages of the key do not wait
		Redelivery:    3 * 24 * time.Hour,
		IgnoreUnknown: true,
		Logger:        slog.New(slog.DiscardHandler),
	})
	if err != nil {
		panic(err)
	}
	billing.Handle("order.placed", func(ctx context.Context, tx *memory.Tx, m postrider.Message) error {
		return postrider.Permanent(errors.New("unknown customer")) // no retry would help
	})
	for _, payload := range []string{"first", "second"} {
		if err := billing.Receive(ctx, postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: "7"}, payload)); err != nil {
			panic(err)
		}
	}
	deadLetters, err := store.List(ctx, admin.Filter{Feed: inbox.Feed(billing.Name())}, nil, 10)
	if err != nil {
		panic(err)
	}
	for _, d := range deadLetters {
		fmt.Printf("%s %s %q\n", d.Status, d.Payload, d.LastError)
	}
	fmt.Printf("%+v\n", billing.Stats())
	// Output:
	// dead "first" "unknown customer"
	// waiting "second" ""
	// {Handled:0 Repeated:0 Waiting:1 Failed:0 Dead:1 Late:0}
}

// Handle many messages in one transaction, which costs less per message.
func ExampleInbox_HandleBatch() {
	store := memory.Open(memory.Config{})
	stock, err := inbox.New(store.Inbox(), "stock", inbox.Config{Batch: 100})
	if err != nil {
		panic(err)
	}
	var insertAll inbox.BatchHandler[*memory.Tx] = func(ctx context.Context, tx *memory.Tx, msgs []postrider.Message) error {
		for _, m := range msgs {
			fmt.Println(m.Type, string(m.Payload))
		}
		return nil
	}
	stock.HandleBatch("*", insertAll)
	if err := stock.Receive(context.Background(), postrider.Event("item.sold", postrider.Aggregate{Type: "item", ID: "3"}, 1)); err != nil {
		panic(err)
	}
	// Output: item.sold 1
}

// Without a broker: a relay passes the messages of a feed to the inbox in the same process.
func ExampleInbox_Publisher() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	store := memory.Open(memory.Config{})
	mails, err := inbox.New(store.Inbox(), "mails", inbox.Config{})
	if err != nil {
		panic(err)
	}
	mails.Handle("*", func(ctx context.Context, _ *memory.Tx, m postrider.Message) error {
		postrider.AfterCommit(ctx, stop) // enough for an example
		fmt.Println("send mail:", m.Type)
		return nil
	})
	carrier, err := relay.New(store, mails.Publisher(8), relay.Config{Feed: "mails"})
	if err != nil {
		panic(err)
	}
	done := make(chan error)
	go func() { done <- carrier.Run(ctx) }()
	go func() { done <- mails.Run(ctx) }() // for retries

	err = store.Do(ctx, func(ctx context.Context, tx *memory.Tx) error {
		return store.Enqueue(ctx, tx, postrider.Event("user.registered", postrider.Aggregate{Type: "user", ID: "7"}, "Ada"))
	})
	fmt.Println(err, <-done, <-done)
	// Output:
	// send mail: user.registered
	// <nil> <nil> <nil>
}

// A consumer with its own receive loop needs only the record, in its own transaction.
func ExampleStore() {
	ctx := context.Background()
	store := memory.Open(memory.Config{})
	var received inbox.Store[*memory.Tx] = store.Inbox()

	receive := func(m postrider.Message) error {
		return store.Do(ctx, func(ctx context.Context, tx *memory.Tx) error {
			fresh, err := received.Claim(ctx, tx, "billing", m.ID)
			if err != nil || !fresh {
				return err // inbox.ErrLate is an error, and a repetition is none
			}
			fmt.Println("charge", m.WireID)
			return nil
		})
	}
	for _, id := range []string{"order-7", "order-7", "order-8"} {
		m := postrider.Message{ID: codec.Identity("/shop", id), WireID: id} // as consumers set it, also for others' messages
		if err := receive(m); err != nil {
			fmt.Println(err)
		}
	}
	err := receive(postrider.Message{ID: postrider.ID{0: 0xff, 6: 0x70, 15: 1}}) // made in a far future
	fmt.Println(errors.Is(err, inbox.ErrLate))
	// Output:
	// charge order-7
	// charge order-8
	// true
}

// The methods of a store, for authors of one; see package inboxtest.
func ExampleStore_handle() {
	ctx := context.Background()
	var store inbox.Store[*memory.Tx] = memory.Open(memory.Config{}).Inbox()
	window, err := store.Open(ctx, "billing")
	fmt.Println(window, err)

	m := postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: "7"}, 1)
	var work inbox.Work[*memory.Tx] = func(context.Context, *memory.Tx, []int) error { return errors.New("no") }
	_, err = store.Handle(ctx, "billing", []postrider.Message{m}, false, work)
	var failed *inbox.FailedError
	fmt.Println(errors.As(err, &failed), failed.Unwrap())

	back := inbox.Deferral{Status: feeds.StatusRetry, Blocking: true, Attempts: 1, Cause: failed.Error()}
	fmt.Println(store.Defer(ctx, "billing", m, back))
	for _, next := range []postrider.Message{m, postrider.Event("order.paid", postrider.Aggregate{Type: "order", ID: "7"}, 2), postrider.Event("order.paid", postrider.Aggregate{Type: "order", ID: "8"}, 3)} {
		verdicts, err := store.Handle(ctx, "billing", []postrider.Message{next}, false, func(context.Context, *memory.Tx, []int) error { return nil })
		fmt.Println(verdicts, err)
	}
	var a inbox.Attempt
	a, err = store.Retry(ctx, "billing",
		func(context.Context, *memory.Tx, feeds.Deferred) error { return nil },
		func(d feeds.Deferred, err error) inbox.Deferral {
			return inbox.Deferral{Status: feeds.StatusDead}
		})
	fmt.Println(a.Found, a.Failed, err, store.Maintain(ctx))
	// Output:
	// 168h0m0s <nil>
	// true no
	// <nil>
	// [repeated] <nil>
	// [waiting] <nil>
	// [handled] <nil>
	// true <nil> <nil> <nil>
}

// An inbox refuses to run on a store that forgets too early.
func ExampleWindowError() {
	store := memory.Open(memory.Config{InboxWindow: time.Hour})
	billing, err := inbox.New(store.Inbox(), "billing", inbox.Config{Redelivery: 2 * time.Hour})
	if err != nil {
		panic(err)
	}
	billing.Handle("*", func(context.Context, *memory.Tx, postrider.Message) error { return nil })
	var window *inbox.WindowError
	if errors.As(billing.Run(context.Background()), &window) {
		fmt.Println(window.Consumer, window.Window, window.Redelivery)
	}
	billing, err = inbox.New(store.Inbox(), "billing", inbox.Config{Redelivery: time.Minute, Retry: retry.Policy{Attempts: 1}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	var audit inbox.Handler[*memory.Tx] = func(context.Context, *memory.Tx, postrider.Message) error { return inbox.ErrNoHandler }
	billing.Handle("*", audit)
	fmt.Println(billing.Receive(context.Background(), postrider.Event("a", postrider.Aggregate{}, 1)), billing.Stats().Dead, inbox.Late, inbox.Handled)
	// Output:
	// billing 1h0m0s 2h0m0s
	// <nil> 1 late handled
}

// The deferred messages of a consumer are in a feed of its own, whose name contains that of the
// consumer.
func ExampleConsumerOf() {
	fmt.Println(inbox.ConsumerOf(inbox.Feed("billing")))
	fmt.Println(inbox.ConsumerOf("default") == "")
	// Output:
	// billing
	// true
}
