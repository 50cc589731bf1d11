package saga_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/saga"
	"github.com/postrider/postrider/store/memory"
)

// With a database, Tx is pgx.Tx or *sql.Tx.
type Tx = *memory.Tx

type Trip struct {
	City  string
	Price int
}

func say(text string) func(context.Context, Tx, *Trip) error {
	return func(_ context.Context, _ Tx, trip *Trip) error {
		fmt.Println(text, trip.City)
		return nil
	}
}

func Example() {
	log := memory.Open(memory.Config{})
	store := log.Sagas() // db.Sagas() of postgres.Open with a database
	booking, err := saga.New(store, "book-trip",
		saga.Step("hotel", func(ctx context.Context, tx Tx, trip *Trip) error {
			trip.Price += 100
			fmt.Println("reserve hotel, idempotency key", saga.Key(ctx))
			return log.Enqueue(ctx, tx, postrider.Event("hotel.reserved", postrider.Aggregate{Type: "trip", ID: trip.City}, trip))
		}, say("cancel hotel in")),
		saga.Step("payment", func(context.Context, Tx, *Trip) error {
			return postrider.Permanent(errors.New("card refused")) // a retry does not help
		}, nil))
	if err != nil {
		fmt.Println(err)
		return
	}
	booking.Within(24 * time.Hour)

	runner, err := saga.NewRunner(saga.Config{Logger: slog.New(slog.DiscardHandler)}, booking)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() { _ = runner.Run(ctx) }()

	// In the transaction of the application: the order and its saga, or neither.
	err = log.Do(ctx, func(ctx context.Context, tx Tx) error {
		return booking.Start(ctx, tx, "trip-7", Trip{City: "Lisbon"})
	})
	if err != nil {
		fmt.Println(err)
	}
	trip := await(store, "trip-7", saga.Compensated)
	fmt.Println(trip.Status, "because of", trip.Cause)

	err = log.Do(ctx, func(ctx context.Context, tx Tx) error {
		return booking.Start(ctx, tx, "trip-7", Trip{})
	})
	fmt.Println("again:", errors.Is(err, saga.ErrExists))
	// Output:
	// reserve hotel, idempotency key book-trip/trip-7/hotel
	// cancel hotel in Lisbon
	// compensated because of payment: card refused
	// again: true
}

// A step can wait for a message or a human, and steps can run in parallel.
func ExampleWait() {
	store := memory.Open(memory.Config{}).Sagas()
	booking, err := saga.New(store, "book-trip",
		saga.Parallel(
			saga.Step("hotel", func(context.Context, Tx, *Trip) error { return nil }, nil),
			saga.Step("flight", func(context.Context, Tx, *Trip) error { return nil }, nil).
				Timeout(10*time.Second).Retry(retry.Policy{Attempts: 5, First: time.Second, Most: time.Minute}),
		),
		saga.Wait("approval", func(_ context.Context, _ Tx, trip *Trip, by string) error {
			fmt.Println(by, "approves", trip.City)
			return nil
		}, nil).Within(24*time.Hour))
	if err != nil {
		fmt.Println(err)
		return
	}
	runner, err := saga.NewRunner(saga.Config{}, booking)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() { _ = runner.Run(ctx) }()

	_ = store.Do(ctx, func(ctx context.Context, tx Tx) error {
		return booking.Start(ctx, tx, "trip-8", Trip{City: "Porto"})
	})
	await(store, "trip-8", saga.Waiting)
	for range 2 { // in the transaction of an inbox handler, for instance
		_ = store.Do(ctx, func(ctx context.Context, tx Tx) error {
			receipt, err := booking.Signal(ctx, tx, "trip-8", "approval", "Ann")
			fmt.Println(receipt, err)
			return err
		})
		await(store, "trip-8", saga.Completed)
	}
	// Output:
	// accepted <nil>
	// Ann approves Porto
	// repeated <nil>
}

// A compensation that uses up its attempts makes a saga stuck. It is retried at a slow rate, and an
// operator can act.
func ExampleAdmin() {
	store := memory.Open(memory.Config{}).Sagas()
	down := errors.New("bank is down")
	once := retry.Policy{Attempts: 1}
	booking, err := saga.New(store, "book-trip",
		saga.Step("deposit", func(context.Context, Tx, *Trip) error { return nil },
			func(context.Context, Tx, *Trip) error { return down }).RetryUndo(once),
		// The answer was lost, so the payment may or may not have happened. It is undone in any
		// case.
		saga.Step("payment", func(context.Context, Tx, *Trip) error { return down }, say("refund, to be sure,")).Retry(once).UndoFailed())
	if err != nil {
		fmt.Println(err)
		return
	}
	runner, err := saga.NewRunner(saga.Config{Logger: slog.New(slog.DiscardHandler)}, booking)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() { _ = runner.Run(ctx) }()
	_ = store.Do(ctx, func(ctx context.Context, tx Tx) error {
		return booking.Start(ctx, tx, "trip-9", Trip{City: "Faro"})
	})

	var operator saga.Admin = store
	trip := await(operator, "trip-9", saga.Stuck)
	for _, s := range trip.Steps {
		fmt.Println(s.Name, s.State, s.Error)
	}
	counts, _ := operator.Count(ctx, saga.Filter{Statuses: []saga.Status{saga.Stuck}})
	fmt.Println(counts)
	done, err := operator.Act(ctx, admin.By{Who: "ann", Why: "paid back by hand"}, saga.ActSkip, "book-trip", "trip-9", "deposit")
	fmt.Println(done, err)
	fmt.Println(await(operator, "trip-9", saga.Compensated).Step("deposit").State)
	// Output:
	// refund, to be sure, Faro
	// deposit stuck bank is down
	// payment undone bank is down
	// map[stuck:1]
	// true <nil>
	// skipped
}

// Without a database, for work that need not survive the process.
func ExampleRun() {
	step := func(text string, err error) func(context.Context) error {
		return func(context.Context) error {
			fmt.Println(text)
			return err
		}
	}
	err := saga.Run(context.Background(),
		saga.Do("hotel", step("reserve hotel", nil), step("cancel hotel", nil)),
		saga.Do("flight", step("reserve flight", nil), step("cancel flight", nil)),
		saga.Do("payment", step("charge", errors.New("card refused")), nil))
	fmt.Println(err)
	var failed *saga.StepError
	fmt.Println(errors.As(err, &failed), failed.Step, failed.Stuck)
	// Output:
	// reserve hotel
	// reserve flight
	// charge
	// cancel flight
	// cancel hotel
	// saga: step payment: card refused
	// true payment <nil>
}

func await(store saga.Admin, id string, status saga.Status) *saga.Instance {
	for {
		i, err := store.Show(context.Background(), "book-trip", id)
		if err == nil && i.Status == status {
			return i
		}
		time.Sleep(time.Millisecond)
	}
}
