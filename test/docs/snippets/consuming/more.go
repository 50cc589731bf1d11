package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/kafka"
	"github.com/postrider/postrider/broker/middleware"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/store/postgres"
)

// fromKafka is another consumer for the same inbox.
func fromKafka() (postrider.Consumer, error) {
	//docs:begin kafka
	orders, err := kafka.NewConsumer(kafka.Config{URL: "kafka://localhost:9092", Name: "orders", Group: "billing"})
	//docs:end
	return orders, err
}

// withRetry configures how often a handler is retried.
func withRetry(db *postgres.DB) (*inbox.Inbox[pgx.Tx], error) {
	//docs:begin retry
	billing, err := inbox.New(db.Inbox(), "billing", inbox.Config{
		Retry: retry.Policy{First: time.Second, Most: time.Minute, Attempts: 20, MaxAge: 24 * time.Hour},
		// or: retry.Policy{Pauses: []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second}}
	})
	//docs:end
	return billing, err
}

// byType configures how each type of message is handled.
func byType(db *postgres.DB, log *slog.Logger) (*inbox.Inbox[pgx.Tx], error) {
	//docs:begin bytype
	billing, err := inbox.New(db.Inbox(), "billing", inbox.Config{
		Middleware: []postrider.Middleware{middleware.Log(log)}, // around every handler
	})
	inbox.On(billing, "order.placed", charge,
		inbox.Timeout(5*time.Second),
		inbox.Concurrency(4), // the payment provider stands no more
		inbox.Retry(retry.Policy{First: time.Second, Most: 10 * time.Minute, Attempts: 50}))
	inbox.OnBatch(billing, "order.viewed", count) // func(ctx context.Context, tx pgx.Tx, views []OrderViewed) error
	//docs:end
	return billing, err
}

// OrderViewed is a frequent message.
type OrderViewed struct{ Order string }

func count(ctx context.Context, tx pgx.Tx, views []OrderViewed) error {
	orders := make([]string, len(views))
	for i, v := range views {
		orders[i] = v.Order
	}
	_, err := tx.Exec(ctx, "INSERT INTO views SELECT unnest($1::text[])", orders)
	return err
}

// direct passes messages from the relay to the inbox.
func direct(ctx context.Context, db *postgres.DB, billing *inbox.Inbox[pgx.Tx]) error {
	//docs:begin direct
	carrier, err := relay.New(db.Feeds(), billing.Publisher(16), relay.Config{Feed: "billing"})
	if err != nil {
		return err
	}
	go billing.Run(ctx) // tries again what was deferred
	return carrier.Run(ctx)
	//docs:end
}

// claim is a handler in an application's own receive loop.
func claim(ctx context.Context, tx pgx.Tx, store inbox.Store[pgx.Tx], m postrider.Message, o OrderPlaced) error {
	//docs:begin claim
	fresh, err := store.Claim(ctx, tx, "billing", m.ID)
	if err != nil || !fresh {
		return err // inbox.ErrLate, or nil for a repetition: acknowledge it
	}
	//docs:end
	return charge(ctx, tx, o)
}
