package main

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/kafka"
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

// patient says how often a handler is tried.
func patient(store *postgres.Inbox[pgx.Tx]) (*inbox.Inbox[pgx.Tx], error) {
	//docs:begin retry
	billing, err := inbox.New(store, "billing", inbox.Config{
		Retry: retry.Policy{First: time.Second, Most: time.Minute, Attempts: 20, MaxAge: 24 * time.Hour},
		// or: retry.Policy{Pauses: []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second}}
	})
	//docs:end
	return billing, err
}

// direct hands messages from the relay to the inbox.
func direct(ctx context.Context, store postrider.Store, billing *inbox.Inbox[pgx.Tx]) error {
	//docs:begin direct
	carrier, err := relay.New(store, billing.Publisher(16), relay.Config{Feed: "billing"})
	if err != nil {
		return err
	}
	go billing.Run(ctx) // tries again what was set aside
	return carrier.Run(ctx)
	//docs:end
}

// claim is a handler in a loop of the application's own.
func claim(ctx context.Context, tx pgx.Tx, store *postgres.Inbox[pgx.Tx], m postrider.Message, o OrderPlaced) error {
	//docs:begin claim
	fresh, err := store.Claim(ctx, tx, "billing", m.ID)
	if err != nil || !fresh {
		return err // inbox.ErrLate, or nil for a repetition: acknowledge it
	}
	//docs:end
	return charge(ctx, tx, o)
}
