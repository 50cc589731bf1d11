package main

import (
	"context"
	"log"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/nats"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/postgres"
)

type Order struct {
	ID    string
	Cents int
}

func main() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	check(err)
	db, err := postgres.Open(pool, postgres.Config{})
	check(err)

	// Write: the order and its message are committed together, or neither is.
	outbox, order := db.Outbox(), Order{"42", 700}
	check(pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "INSERT INTO orders VALUES ($1, $2)", order.ID, order.Cents); err != nil {
			return err
		}
		return outbox.Enqueue(ctx, tx, postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: order.ID}, order))
	}))

	// Relay: in order per key, until the broker has confirmed.
	publisher, err := nats.NewPublisher(nats.Config{URL: "nats://localhost:4222"})
	check(err)
	r, err := relay.New(db.Feeds(), publisher, relay.Config{})
	check(err)
	go func() { check(r.Run(ctx)) }()

	// Receive: the effect and the record that it happened are one transaction. A repeated message has no effect.
	consumer, err := nats.NewConsumer(nats.Config{URL: "nats://localhost:4222", Name: "order.>", Group: "billing"})
	check(err)
	in, err := inbox.New(db.Inbox(), "billing", inbox.Config{})
	check(err)
	inbox.On(in, "order.placed", func(ctx context.Context, tx pgx.Tx, o Order) error {
		_, err := tx.Exec(ctx, "INSERT INTO charges VALUES ($1, $2)", o.ID, o.Cents)
		return err
	})
	check(in.Run(ctx, consumer))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
