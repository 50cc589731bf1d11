// Package front contains the snippet of the site's front page.
package front

import (
	"context"
	"log"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/nats"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/postgres"
)

// Order is an order of the shop.
type Order struct {
	ID    string
	Cents int
}

func save(ctx context.Context, tx pgx.Tx, order Order) error {
	_, err := tx.Exec(ctx, "INSERT INTO orders VALUES ($1, $2)", order.ID, order.Cents)
	return err
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// Run writes an order and its message, relays messages, and receives them.
func Run(ctx context.Context, pool *pgxpool.Pool, broker string, order Order) {
	//docs:begin run
	db, err := postgres.Open(pool, postgres.Config{})
	check(err)

	// Write: the order and its message are committed together, or neither is.
	outbox := db.Outbox()
	check(pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if err := save(ctx, tx, order); err != nil {
			return err
		}
		of := postrider.Aggregate{Type: "order", ID: order.ID}
		return outbox.Enqueue(ctx, tx, postrider.Event("order.placed", of, order))
	}))

	// Relay: in order per key, until the broker has confirmed.
	publisher, err := nats.NewPublisher(nats.Config{URL: broker})
	check(err)
	r, err := relay.New(db.Feeds(), publisher, relay.Config{})
	check(err)
	go func() { check(r.Run(ctx)) }()

	// Receive: the effect and the record of it are one transaction. A repetition has no effect.
	consumer, err := nats.NewConsumer(nats.Config{URL: broker, Name: "order.>", Group: "billing"})
	check(err)
	in, err := inbox.New(db.Inbox(), "billing", inbox.Config{})
	check(err)
	inbox.On(in, "order.placed", func(ctx context.Context, tx pgx.Tx, o Order) error {
		_, err := tx.Exec(ctx, "INSERT INTO charges VALUES ($1, $2)", o.ID, o.Cents)
		return err
	})
	check(in.Run(ctx, consumer))
	//docs:end
}
