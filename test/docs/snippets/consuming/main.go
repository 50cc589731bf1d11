package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider/broker/nats"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/store/postgres"
)

type OrderPlaced struct {
	Order    string `json:"order"`
	Customer string `json:"customer"`
	Cents    int    `json:"cents"`
}

func charge(ctx context.Context, tx pgx.Tx, o OrderPlaced) error {
	_, err := tx.Exec(ctx, "INSERT INTO charges (order_id, customer, cents) VALUES ($1, $2, $3)", o.Order, o.Customer, o.Cents)
	return err
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	db, err := postgres.Open(pool, postgres.Config{})
	if err != nil {
		log.Fatal(err)
	}
	billing, err := inbox.New(db.Inbox(), "billing", inbox.Config{})
	if err != nil {
		log.Fatal(err)
	}
	inbox.On(billing, "order.placed", charge)

	orders, err := nats.NewConsumer(nats.Config{URL: "nats://localhost:4222", Name: "order.>", Group: "billing"})
	if err != nil {
		log.Fatal(err)
	}
	if err := billing.Run(ctx, orders); err != nil {
		log.Fatal(err)
	}
}
